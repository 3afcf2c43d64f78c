"""Kernels of a test run are compiled into a directory of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpu_backend.executor.devices.cpu.kernels import launch, module, set_cache_directory


@pytest.fixture(scope="session", autouse=True)
def kernel_directory(tmp_path_factory: pytest.TempPathFactory) -> None:
    set_cache_directory(tmp_path_factory.mktemp("kernels") / "cache")


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
