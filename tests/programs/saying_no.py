"""What cannot work from afar is refused with the way that works."""

from __future__ import annotations

import cupy as cp
import numpy as np
from expecting import refused

a = cp.arange(4.0)

# --- memory that a session of a shared GPU may not take --------------------------------------------------------------

refused(RuntimeError, lambda: cp.cuda.set_allocator(lambda size: None), "MemoryPool().malloc")
refused(RuntimeError, lambda: cp.cuda.ManagedMemory(8), "what the session was given")
refused(RuntimeError, lambda: cp.cuda.memory_hooks.LineProfileHook().__enter__(), "used_bytes()")

# --- pointers for libraries of this process --------------------------------------------------------------------------

interface = a.__cuda_array_interface__
assert (interface["shape"], interface["typestr"], interface["strides"], interface["version"]) == ((4,), "<f8", None, 3)
refused(BufferError, lambda: interface["data"], "x.get()")
refused(BufferError, lambda: interface.get("data"), "x.get()")
refused(BufferError, lambda: bool(dict.get(interface, "data")[1]), "x.get()")
assert a[::2].__cuda_array_interface__["strides"] == (16,)
refused(BufferError, lambda: np.from_dlpack(a), "x.get()")
refused(BufferError, a.toDlpack, "x.get()")
assert np.from_dlpack(a, device="cpu").tolist() == [0, 1, 2, 3]
assert a.__dlpack_device__() == (2, 0)
refused(TypeError, lambda: np.asarray(a), ".get()")
refused(TypeError, lambda: memoryview(a))
refused(TypeError, lambda: cp.ones(3) + object())


class OnAnotherGpu:
    """An array of another library of this process, on a GPU of this machine."""

    def __init__(self) -> None:
        self.__cuda_array_interface__ = {"shape": (3,), "typestr": "<f8", "data": (4096, False), "version": 3}

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, 0)

    def __dlpack__(self, **options: object) -> object:
        raise BufferError("this is a GPU's memory")


refused(TypeError, lambda: cp.asarray(OnAnotherGpu()), "host memory")
refused(BufferError, lambda: cp.from_dlpack(OnAnotherGpu()), "host memory")

# --- hooks of memory: a program may define one, and is told when it uses it -------------------------------------------


class Counting(cp.cuda.MemoryHook):
    """Would count allocations."""

    name = "Counting"


for hook in (Counting(), cp.cuda.memory_hooks.DebugPrintHook()):
    refused(RuntimeError, hook.__enter__, "would have to run where memory is allocated")
