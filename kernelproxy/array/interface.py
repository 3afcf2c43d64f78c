"""``__cuda_array_interface__`` of a remote array: all that it says of the array, except where its memory would be.

Libraries look whether an object has the attribute to find out whether it is an array of a GPU, and ours are.
What cannot be had is the pointer: reading ``data`` raises, in Python and in C.
"""

from __future__ import annotations

from typing import Any, NoReturn

from kernelproxy.calls.array_core import ArrayCore
from kernelproxy.calls.foreign_arrays import NoPointer


class CudaArrayInterface(dict[str, Any]):
    """The dictionary. Its item ``data`` cannot be read; who is given it as another array's knows whose it is."""

    def __init__(self, array: ArrayCore) -> None:
        layout = array._layout
        super().__init__(
            shape=layout.shape,
            typestr=layout.dtype.str,
            descr=layout.dtype.descr,
            version=3,
            strides=None if layout.c_contiguous else layout.strides,
            data=(0, NoPointer(array)),
            stream=None,
        )

    def __getitem__(self, key: str) -> Any:
        return self._no_pointer() if key == "data" else super().__getitem__(key)

    def get(self, key: str, default: object = None) -> Any:
        """Return the item, or ``default``.

        Raises
        ------
        BufferError
            If it is ``data``.
        """
        return self._no_pointer() if key == "data" else super().get(key, default)

    def _no_pointer(self) -> NoReturn:
        refuses: NoPointer = super().__getitem__("data")[1]
        refuses.refuse()
