"""A user whose home cannot be written: each command says so in one line, and what to do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpu_backend.transport import curve
from tests.apart import APART, needs_mounts
from workbench.keeping import REMEDY

#: Where settings and pools would be if these were not unset.
_ELSEWHERE = ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "JUPYTER_RUNTIME_DIR", "GPU_WORKBENCH_CONFIG")
_KEY = curve.generate().public.decode()
_COMMANDS = (
    ("lab", "--no-browser"),
    ("pool", "up"),
    ("connect", "tcp://127.0.0.1:7733", f"--server-key={_KEY}"),
)


def told(home: Path, *words: str, apart: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    """Run ``workbench`` with this home, and see to it that no traceback is shown."""
    variables = {name: value for name, value in os.environ.items() if name not in _ELSEWHERE}
    done = subprocess.run(
        [*apart, sys.executable, "-m", "workbench", *words],
        capture_output=True, text=True, check=False, timeout=100, env={**variables, "HOME": str(home)},
    )  # fmt: skip
    assert "Traceback" not in done.stderr, done.stderr
    assert "Warning" not in done.stderr, done.stderr
    return done


def is_one_clear_line(done: subprocess.CompletedProcess[str], home: Path) -> bool:
    (line,) = [one for one in done.stderr.splitlines() if not one.endswith("...")]
    return done.returncode == 1 and line.startswith("error: ") and str(home) in line and line.endswith(REMEDY)


@pytest.fixture
def no_directory(tmp_path: Path) -> Path:
    """A home that is none, which nobody can write, whoever they are."""
    path = tmp_path / "home"
    path.touch()
    return path


@pytest.mark.parametrize("words", _COMMANDS, ids=lambda words: words[0])
def test_a_home_that_is_none_is_told_in_one_line(no_directory: Path, words: tuple[str, ...]) -> None:
    done = told(no_directory, *words)
    assert is_one_clear_line(done, no_directory), done.stderr


@needs_mounts
@pytest.mark.parametrize("words", _COMMANDS, ids=lambda words: words[0])
def test_a_home_that_is_read_only_is_told_in_one_line(tmp_path: Path, words: tuple[str, ...]) -> None:
    done = told(tmp_path, *words, apart=(*APART, *_read_only(tmp_path)))
    assert is_one_clear_line(done, tmp_path), done.stderr


@needs_mounts
def test_the_doctor_sees_a_read_only_home(tmp_path: Path) -> None:
    done = told(tmp_path, "doctor", apart=(*APART, *_read_only(tmp_path)))
    (line,) = [one for one in done.stdout.splitlines() if "folders" in one]
    assert "problem" in line
    assert f"nothing can be written to {tmp_path}" in line
    assert done.returncode == 1


def _read_only(place: Path) -> tuple[str, ...]:
    """Return the beginning of a command line that runs the rest with nothing but a read-only disk in ``place``."""
    return "sh", "-c", 'mount -t tmpfs -o ro tmpfs "$0" && exec "$@"', str(place)
