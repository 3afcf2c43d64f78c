"""Kernels written in Python, compiled by way of C++."""

from __future__ import annotations

from gpu_backend.devices.cpu.kernels.jit.function_source import FunctionSource, function_source
from gpu_backend.devices.cpu.kernels.jit.rawkernel import JitRawKernel, rawkernel
from gpu_backend.devices.cpu.kernels.jit.values import ModuleName

__all__ = ["FunctionSource", "JitRawKernel", "ModuleName", "function_source", "rawkernel"]
