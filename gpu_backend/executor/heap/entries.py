"""What stands behind a handle: a live entry of some kind, or word of the op that failed to make it."""

from __future__ import annotations

from enum import Enum, auto
from typing import NamedTuple

from gpu_backend.wire.errors import ErrorRecord

__all__ = ["Failure", "Kind", "kind_named"]


class Kind(Enum):
    """What a live entry is. Arrays are the rule; of the others it counts what may stay with them."""

    ARRAY = auto()
    #: Of random numbers: what its methods are given they only read, and what they give is new.
    GENERATOR = auto()
    #: A sparse matrix: with some methods it only reads what they are given.
    MATRIX = auto()
    #: Of a transform: it has work areas, and may remember what it was given.
    PLAN = auto()
    #: Compiled of source: reads and writes its arguments, and forgets them.
    KERNEL = auto()
    #: Any other: a spline, an array's memory, a call under way. It may remember what it was given.
    OBJECT = auto()
    #: Of the host: a number, a text, a dtype. There is no memory of the device in it.
    VALUE = auto()


class Failure(NamedTuple):
    """Why a handle holds nothing: the op that should have made it, and what that raised."""

    seq: int
    error: ErrorRecord


_KERNELS = frozenset(
    ("cupy.RawKernel", "cupy.ElementwiseKernel", "cupy.ReductionKernel", "cupyx.jit._interface._JitRawKernel")
)
_GENERATORS = frozenset(("cupy.random.Generator", "cupy.random.RandomState"))
_PLANS = "cupy.cuda.cufft."
_SPARSE = "cupyx.scipy.sparse."
_MATRICES = "coo_matrix csc_matrix csr_matrix dia_matrix coo_array csc_array csr_array dia_array".split()


def kind_named(name: str) -> Kind:
    """Return the kind of objects whose class the surface describes by ``name``."""
    if name == "cupy.ndarray":
        return Kind.ARRAY
    if name in _KERNELS:
        return Kind.KERNEL
    if name in _GENERATORS:
        return Kind.GENERATOR
    if name.startswith(_SPARSE) and name.removeprefix(_SPARSE) in _MATRICES:
        return Kind.MATRIX
    return Kind.PLAN if name.startswith(_PLANS) else Kind.OBJECT
