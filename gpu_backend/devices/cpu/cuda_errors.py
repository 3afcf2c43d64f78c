"""CUDA's own errors, for the few that can happen without CUDA."""

from __future__ import annotations

from gpu_backend.devices.cpu.table import define_value

_ERRORS = {
    1: ("cudaErrorInvalidValue", "invalid argument"),
    2: ("cudaErrorMemoryAllocation", "out of memory"),
    101: ("cudaErrorInvalidDevice", "invalid device ordinal"),
    400: ("cudaErrorInvalidResourceHandle", "invalid resource handle"),
    801: ("cudaErrorNotSupported", "operation not supported"),
    900: ("cudaErrorStreamCaptureUnsupported", "operation not permitted when stream is capturing"),
}

INVALID_VALUE = 1
INVALID_DEVICE = 101
INVALID_HANDLE = 400
NOT_SUPPORTED = 801


class CUDARuntimeError(RuntimeError):
    """A CUDA runtime call failed. ``status`` is CUDA's number for why."""

    public_name = "cupy.cuda.runtime.CUDARuntimeError"

    def __init__(self, status: int) -> None:
        self.status = status
        name, text = _ERRORS.get(status, ("cudaErrorUnknown", "unknown error"))
        super().__init__(f"{name}: {text}")


define_value(CUDARuntimeError, CUDARuntimeError.public_name)
