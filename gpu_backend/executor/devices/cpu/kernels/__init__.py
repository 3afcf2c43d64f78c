"""User kernels on the CPU device."""
from gpu_backend.executor.devices.cpu.kernels.raw import RawKernel, RawModule
from gpu_backend.executor.devices.cpu.kernels.elementwise import ElementwiseKernel
