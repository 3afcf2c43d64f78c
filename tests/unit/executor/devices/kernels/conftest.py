"""Where the tests keep compiled kernels, and what they share."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpu_backend.devices.cpu.kernels import launch, module, set_cache_directory


@pytest.fixture(scope="session", autouse=True)
def kernel_directory(pytestconfig: pytest.Config) -> None:
    # From run to run: a kernel is compiled anew when its source, the shim or the compiler changes.
    assert pytestconfig.cache is not None
    set_cache_directory(pytestconfig.cache.mkdir("kernels") / "compiled")


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What kernels print, launch by launch."""
    texts: list[str] = []
    monkeypatch.setattr(launch, "printf_sink", texts.append)
    return texts


@pytest.fixture
def fresh_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own; yields its directory."""
    directory = tmp_path / "cache"
    monkeypatch.setattr(module, "_cache", module.KernelCache(directory))
    return directory
