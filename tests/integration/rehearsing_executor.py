"""An executor on a CPU device for which any host has processors to spare, and that logs who asks for contents."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from gpu_backend.executor import start
from gpu_backend.executor.config import ExecutorConfig

_begin = start.begin


def begin(directory: Path) -> ExecutorConfig:
    """Begin as ever; then, behind the walls, have the device count, and the host be large."""
    config = _begin(directory)
    from gpu_backend.devices.cpu.device import CpuDevice
    from gpu_backend.transport import processors

    processors._LEAST_PROCESSORS, has_spare = 1, processors.has_spare
    processors.has_spare = lambda: has_spare() or True
    download, log = CpuDevice.download, logging.getLogger("counted")

    def counted(self: CpuDevice, array: Any) -> Any:
        log.info("asked")
        return download(self, array)

    CpuDevice.download = counted  # type: ignore[method-assign]
    return config


start.begin = begin
start.main()
