"""``x.flat``: the elements of a remote array one behind the other, in C order."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelproxy.calls.argument_types import ArrayLike
from kernelproxy.public_names import make


class flatiter:  # noqa: N801 (CuPy's name)
    """Iterates over the elements of an array, each a 0-d array, and gives access to them by one index."""

    __module__ = "cupy._indexing.iterate"

    def __init__(self, a: Any) -> None:
        self._base = a
        self._place = 0

    @property
    def base(self) -> Any:
        """The array that is iterated over."""
        return self._base

    def __getitem__(self, ind: Any) -> Any:
        """Return copies of elements, for an int, a slice or Ellipsis.

        Raises
        ------
        IndexError
            For any other index.
        """
        if ind is Ellipsis:
            ind = slice(None)
        if self._is_place(ind):
            return self._base[self._indices(ind)].copy()
        return self._base.reshape(-1)[_checked(ind)].astype(self._base.dtype)  # a kernel, which fetches from nowhere

    def __setitem__(self, ind: Any, value: ArrayLike) -> None:
        """Set elements, for an int, a slice or Ellipsis; a value that is too short is repeated."""
        if ind is Ellipsis:
            ind = slice(None)
        if self._is_place(ind):
            self._base[self._indices(ind)] = value
            return
        places = np.arange(self._base.size)[_checked(ind)]
        if not places.size:
            return
        values = make("cupy.asarray")(value, dtype=self._base.dtype).ravel()
        self._base.put(places, values[np.arange(places.size) % values.size])

    @staticmethod
    def _is_place(ind: Any) -> bool:
        return not isinstance(ind, (bool, tuple, slice)) and bool(np.isscalar(ind))

    def _indices(self, ind: Any) -> tuple[int, ...]:
        """Return the index on each axis; one that is too large is refused by the array itself."""
        rest, size, found = int(ind), self._base.size, []
        for length in self._base.shape:
            size //= length
            place, rest = divmod(rest, size)
            found.append(place)
        return tuple(found)

    def __iter__(self) -> flatiter:
        return self

    def __next__(self) -> Any:
        if self._place >= len(self):
            raise StopIteration
        self._place += 1
        return self[self._place - 1]

    def copy(self) -> Any:
        """Return the elements as a new array of one dimension."""
        return self._base.flatten()

    def __len__(self) -> int:
        return int(self._base.size)


def _checked(ind: Any) -> slice:
    if isinstance(ind, slice):
        return ind
    raise IndexError("unsupported iterator index")
