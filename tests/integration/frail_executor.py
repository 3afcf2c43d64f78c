"""An executor on a CPU device that breaks as a GPU does: an op that divides by zero loses the device for good."""

from __future__ import annotations

from pathlib import Path

from gpu_backend.executor import start
from gpu_backend.executor.config import ExecutorConfig

_begin = start.begin


def begin(directory: Path) -> ExecutorConfig:
    """Begin as ever; then, behind the walls, have the device break."""
    config = _begin(directory)
    from gpu_backend.devices.cpu.device import CpuDevice

    CpuDevice.is_fatal = lambda self, error: "break" in str(error)  # type: ignore[method-assign]
    return config


start.begin = begin
start.main()
