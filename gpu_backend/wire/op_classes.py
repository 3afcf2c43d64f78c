"""The classes of ops by which GPU time is told apart."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

__all__ = ["BOUND_BY_ARITHMETIC", "BOUND_BY_MEMORY", "OP_CLASSES", "OpClass", "bound_parts"]


class OpClass(StrEnum):
    """What an op does, as far as its name tells. Few, so that an operator sees at a glance what a pool is used for."""

    #: Ufuncs, operators, casts: each element by itself.
    ELEMENTWISE = "elementwise"
    #: Sums, means, extremes, cumulative sums, histograms.
    REDUCTION = "reduction"
    #: Products of matrices, linear algebra, Fourier transforms, convolutions.
    LINALG = "linalg"
    #: Kernels that the user wrote.
    KERNEL = "kernel"
    #: Copies on the device, to it and from it; fills and indexing.
    MEMORY = "memory"
    #: Random numbers, sorting, sparse matrices, images, and what no other class fits.
    OTHER = "other"


#: In the order in which times by class stand in messages and on pages. New ones are added at the end.
OP_CLASSES = tuple(OpClass)

#: Classes of ops that wait for memory and hardly for arithmetic, and the reverse, as nearly all of them do that are
#: large enough to matter. Of the others a name does not tell.
BOUND_BY_MEMORY = (OpClass.ELEMENTWISE, OpClass.REDUCTION, OpClass.MEMORY)
BOUND_BY_ARITHMETIC = (OpClass.LINALG,)
_ARITHMETIC, _MEMORY = ([OP_CLASSES.index(kind) for kind in kinds] for kinds in (BOUND_BY_ARITHMETIC, BOUND_BY_MEMORY))


def bound_parts(before: Sequence[int], now: Sequence[int]) -> tuple[float, float]:
    """Return which parts of the time that was used meanwhile went into ops bound by arithmetic, and by memory.

    ``before`` and ``now`` are times by class, in the order of `OP_CLASSES`. Both parts are -1 where none was used.
    """
    if before == now:
        return -1.0, -1.0
    used = [max(0, then) for then in map(int.__sub__, now, before)]
    total = sum(used)
    if not total:
        return -1.0, -1.0
    return sum(used[at] for at in _ARITHMETIC) / total, sum(used[at] for at in _MEMORY) / total
