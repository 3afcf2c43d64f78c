"""What CuPy's functions take, in types: how the notebook's side declares their parameters.

Where a call only passes on what a program wrote, to the executor or to the rules that prove its result, it takes any
``object``: what has no meaning there is refused by the encoder, by name, and no type would say so sooner.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import EllipsisType
from typing import TYPE_CHECKING, Protocol, SupportsIndex, TypeAlias

import numpy as np

from kernelproxy.calls.array_core import ArrayCore
from kernelproxy.calls.stand_ins import StandIn

if TYPE_CHECKING:  # it is loaded by nobody else
    import numpy.typing as npt


class HoldsArray(Protocol):
    """An object that stands for a remote array, as a polynomial does for its coefficients."""

    def __cupy_get_ndarray__(self) -> ArrayCore:
        """Return the array."""
        ...


class WrapsMemory(Protocol):
    """An object that says where its memory on the device is, as arrays of other libraries do."""

    @property
    def __cuda_array_interface__(self) -> Mapping[str, object]:
        """Address, shape and dtype."""
        ...


#: A NumPy array of any shape and dtype.
HostArray: TypeAlias = "np.ndarray[tuple[int, ...], np.dtype[np.generic]]"
#: What an array is made of, in the notebook or already on the device.
ArrayLike: TypeAlias = "ArrayCore | HoldsArray | WrapsMemory | npt.ArrayLike | Sequence[ArrayLike]"
#: What means a dtype; None for the one that follows from the operands.
DTypeLike: TypeAlias = "npt.DTypeLike | None"
#: The lengths of the axes, or of the only one.
ShapeLike: TypeAlias = "SupportsIndex | Sequence[SupportsIndex]"
#: Which axes; None for all of them.
AxisLike: TypeAlias = "SupportsIndex | Sequence[SupportsIndex] | None"
#: What stands between the brackets of an array.
Index: TypeAlias = (
    "SupportsIndex | slice | EllipsisType | ArrayCore | HostArray | Sequence[Index] | tuple[Index, ...] | None"
)
#: Where work runs; None for the current stream of the thread.
StreamLike: TypeAlias = "StandIn | None"
#: Blocks of a grid, or threads of a block, along up to three axes.
Extent: TypeAlias = "SupportsIndex | tuple[SupportsIndex, ...]"
