"""CuPy's user kernels on the CPU device: CUDA C++ compiled by the machine's own compiler, on NumPy arrays.

What a class is called and how it is called is CuPy's. Arrays are ``numpy.ndarray`` and stand for device arrays, so a
host array that a raw kernel takes by value is wrapped in :class:`ByValue`.
"""

from __future__ import annotations

from gpu_backend.devices.cpu.kernels.arguments import ByValue
from gpu_backend.devices.cpu.kernels.elementwise import ElementwiseKernel
from gpu_backend.devices.cpu.kernels.errors import CompileException, CUDADriverError, NoCompilerError
from gpu_backend.devices.cpu.kernels.launch import set_printf_sink
from gpu_backend.devices.cpu.kernels.module import set_cache_directory
from gpu_backend.devices.cpu.kernels.raw import RawKernel
from gpu_backend.devices.cpu.kernels.raw_module import RawModule
from gpu_backend.devices.cpu.kernels.reduction import ReductionKernel

__all__ = [
    "ByValue",
    "CUDADriverError",
    "CompileException",
    "ElementwiseKernel",
    "NoCompilerError",
    "RawKernel",
    "RawModule",
    "ReductionKernel",
    "set_cache_directory",
    "set_printf_sink",
]
