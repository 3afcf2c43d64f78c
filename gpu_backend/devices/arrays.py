"""What is seen of an array of a device: how it lies."""

from __future__ import annotations

from typing import Protocol

from gpu_backend.opstream.layout import DType, Shape

__all__ = ["Array", "Flags"]


class Flags(Protocol):
    """In which orders an array is contiguous. An array can be so in both."""

    @property
    def c_contiguous(self) -> bool:
        """The last axis is the closest in memory, without gaps."""

    @property
    def f_contiguous(self) -> bool:
        """The first axis is the closest in memory, without gaps."""


class Array(Protocol):
    """An array of a device: ``numpy.ndarray`` of the CPU, ``cupy.ndarray`` of a GPU. Strides are in bytes.

    A device is given none but its own: those that it has returned, or has said of that they are (`Device.is_array`).
    """

    @property
    def shape(self) -> Shape:
        """The extent of each axis."""

    @property
    def strides(self) -> Shape:
        """How far apart neighbours along each axis lie; below zero if they lie backwards."""

    @property
    def dtype(self) -> DType:
        """The type of its elements."""

    @property
    def ndim(self) -> int:
        """How many axes it has."""

    @property
    def size(self) -> int:
        """How many elements it has."""

    @property
    def itemsize(self) -> int:
        """The bytes of one element."""

    @property
    def nbytes(self) -> int:
        """The bytes of all elements, whatever lies between them."""

    @property
    def flags(self) -> Flags:
        """How it lies."""

    @property
    def base(self) -> object:
        """The array whose memory it shows; None if the memory is its own, or nobody's."""
