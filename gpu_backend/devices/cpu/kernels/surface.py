"""Registers the kernel classes and their errors under CuPy's public names."""

from __future__ import annotations

from gpu_backend.devices.cpu.kernels.elementwise import ElementwiseKernel
from gpu_backend.devices.cpu.kernels.errors import CompileException, CUDADriverError
from gpu_backend.devices.cpu.kernels.raw import RawKernel
from gpu_backend.devices.cpu.kernels.raw_module import RawModule
from gpu_backend.devices.cpu.kernels.reduction import ReductionKernel
from gpu_backend.devices.cpu.naming import public_class
from gpu_backend.devices.cpu.table import define_value

public_class("cupy.ElementwiseKernel", module="cupy")(ElementwiseKernel)
public_class("cupy.ReductionKernel", module="cupy")(ReductionKernel)
public_class("cupy.RawKernel", module="cupy")(RawKernel)
public_class("cupy.RawModule", module="cupy")(RawModule)
define_value(CompileException, CompileException.public_name)
define_value(CUDADriverError, CUDADriverError.public_name)
