"""For all tests: Ctrl-C means something, and no example has to be ready in time: others may want the processors.

What is compiled from a source that has changed since is tested by nobody in that source's place.
"""

from __future__ import annotations

import gc
import signal
from collections.abc import Iterator
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, settings

# Where tests run in the background of a script Ctrl-C is ignored, and every process that they start would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile(
    "busy", settings.default, deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("busy")


def pytest_configure() -> None:
    root = Path(__file__).parents[1]
    stale = []
    for compiled in (root / "gpu_backend").rglob(f"*{EXTENSION_SUFFIXES[0]}"):
        source = compiled.with_name(f"{compiled.name.partition('.')[0]}.py")
        if source.exists() and source.stat().st_mtime > compiled.stat().st_mtime:
            stale.append(str(source.relative_to(root)))
    for folder in (one for package in ("kernelproxy", "gpu_backend") for one in (root / package).rglob("csrc")):
        newest = max(one.stat().st_mtime for one in folder.iterdir())
        made = folder.parent.glob(f"_*{EXTENSION_SUFFIXES[0]}")
        stale += [str(folder.relative_to(root)) for one in made if one.stat().st_mtime < newest]
    if stale:
        raise pytest.UsageError(f"Compiled from another source: {', '.join(stale)}. `make .venv/.test` compiles again.")


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()  # what thousands of tests are is here to stay: each collection in one of them went through it all


@pytest.fixture
def runtime_directory(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Let pools have their sockets in a directory of this test alone; the paths of pytest's own are too long."""
    with TemporaryDirectory(prefix="gwb", dir="/tmp") as directory:
        monkeypatch.setenv("XDG_RUNTIME_DIR", directory)
        yield Path(directory)
