"""Starts compiled kernels. The C side of every structure here stands in ``shim/gpu/launch.h``."""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable
from typing import Any

from gpu_backend.devices.cpu.kernels.errors import CUDADriverError

#: Limits of a launch, those of every GPU since 2010 but for the shared memory, which is Hopper's.
MAX_BLOCK_THREADS = 1024
MAX_BLOCK = (1024, 1024, 64)
MAX_GRID = (0x7FFFFFFF, 65535, 65535)
DEFAULT_SHARED_BYTES = 48 * 1024
MAX_SHARED_BYTES = 227 * 1024
#: Blocks of a grid whose blocks wait for one another; each is a thread of the operating system.
MAX_COOPERATIVE_BLOCKS = 64

#: Of a thread that waits, 64 KiB of it a guard. Only what is touched costs memory.
STACK_BYTES = 320 * 1024
PRINTF_BYTES = 1 << 20


class Arena(ctypes.Structure):
    _fields_ = (
        ("base", ctypes.c_void_p),
        ("stack_bytes", ctypes.c_size_t),
        ("count", ctypes.c_size_t),
        ("opened", ctypes.c_size_t),
    )


class Output(ctypes.Structure):
    _fields_ = (
        ("text", ctypes.c_void_p),
        ("length", ctypes.c_size_t),
        ("capacity", ctypes.c_size_t),
        ("limit", ctypes.c_size_t),
    )


class Launch(ctypes.Structure):
    _fields_ = (
        ("grid", ctypes.c_uint32 * 3),
        ("block", ctypes.c_uint32 * 3),
        ("arguments", ctypes.c_void_p),
        ("shared_bytes", ctypes.c_size_t),
        ("arena", ctypes.POINTER(Arena)),
        ("output", ctypes.POINTER(Output)),
    )


class Entry(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("run", ctypes.c_void_p),
        ("parameters", ctypes.c_int),
        ("sizes", ctypes.POINTER(ctypes.c_uint32)),
    )


_RUN = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Launch))

# Kernels keep their state (threadIdx, __shared__ arrays, ...) in static memory, so that only one may run at a time.
_running = threading.Lock()
_arena = Arena(None, STACK_BYTES, 1024, 0)
_output = Output(None, 0, 0, PRINTF_BYTES)


def _write_to_stdout(text: str) -> None:
    sys.stdout.write(text)


#: Where the output of ``printf`` in kernels goes when the launch is over.
printf_sink: Callable[[str], Any] = _write_to_stdout


def set_printf_sink(sink: Callable[[str], Any]) -> None:
    """Hand what kernels print to ``sink``, launch by launch, from now on."""
    global printf_sink
    printf_sink = sink


class KernelEntry:
    """A kernel of a loaded module.

    Attributes
    ----------
    name
        By which the module was asked for it.
    sizes
        Bytes of each parameter.
    """

    def __init__(self, entry: Entry, module: object) -> None:
        self.name = (entry.name or b"").decode()
        self.sizes = tuple(entry.sizes[: entry.parameters])
        self._run = _RUN(entry.run)
        self._module = module  # keeps the code loaded

    def launch(
        self, grid: tuple[int, int, int], block: tuple[int, int, int], arguments: int, shared_bytes: int = 0
    ) -> None:
        """Run the kernel to its end.

        Parameters
        ----------
        grid, block
            Blocks of the grid and threads of a block; checked by the caller.
        arguments
            Address of an array with the address of each argument's value.
        shared_bytes
            Dynamic shared memory of a block, in bytes.

        Raises
        ------
        CUDADriverError
            If an assertion failed, the kernel trapped or its threads wait for one another for ever.
        """
        launch = Launch(grid, block, arguments, shared_bytes, ctypes.pointer(_arena), ctypes.pointer(_output))
        with _running:
            status = self._run(launch)
            text = _take_output()
        if text:
            printf_sink(text)
        if status:
            raise _launch_error(status, self.name, text)


def _take_output() -> str:
    if not _output.length:
        return ""
    text = ctypes.string_at(_output.text, _output.length).decode(errors="replace")
    _output.length = 0
    return text


def _launch_error(status: int, name: str, text: str) -> CUDADriverError:
    if status == 1:
        failed = text.rstrip("\n").rpartition("\n")[2]
        return CUDADriverError("CUDA_ERROR_ASSERT", f"device-side assert triggered in kernel '{name}': {failed}")
    if status == 2:
        return CUDADriverError(
            "CUDA_ERROR_LAUNCH_FAILED",
            f"kernel '{name}' trapped, or its threads wait for one another for ever (a grid-wide barrier needs "
            "enable_cooperative_groups=True)",
        )
    if status == 4:
        return CUDADriverError(
            "CUDA_ERROR_LAUNCH_FAILED",
            f"kernel '{name}' divided an integer by zero: a GPU goes on with an undefined result, a processor cannot",
        )
    return CUDADriverError("CUDA_ERROR_OUT_OF_MEMORY", f"no memory for the stacks of the threads of kernel '{name}'")
