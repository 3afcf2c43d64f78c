"""The classes of ops by which GPU time is told apart."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["OP_CLASSES", "OpClass"]


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
