"""``__cuda_array_interface__`` of a remote array: all that it says of the array, except where its memory would be.

Libraries look whether an object has the attribute to find out whether it is an array of a GPU, and ours are.
What cannot be had is the pointer: reading ``data`` raises, in Python and in C.
"""

from __future__ import annotations

from typing import Any, NoReturn

from gpu_backend.opstream.layout import Layout

_NO_POINTER = (
    "This array lives on a remote GPU: there is no CUDA pointer that a local library could use. "
    "Hand over x.get(), or run the other library's work as CuPy kernels."
)


class _NoPointer:
    """Stands where the flag of read-only memory does, which libraries in C read without asking Python for the item."""

    def __bool__(self) -> bool:
        raise BufferError(_NO_POINTER)


class CudaArrayInterface(dict[str, Any]):
    """The dictionary. Its item ``data`` cannot be read."""

    def __init__(self, layout: Layout) -> None:
        super().__init__(
            shape=layout.shape,
            typestr=layout.dtype.str,
            descr=layout.dtype.descr,
            version=3,
            strides=None if layout.c_contiguous else layout.strides,
            data=(0, _NoPointer()),
            stream=None,
        )

    def __getitem__(self, key: str) -> Any:
        return _no_pointer() if key == "data" else super().__getitem__(key)

    def get(self, key: str, default: object = None) -> Any:
        """Return the item, or ``default``.

        Raises
        ------
        BufferError
            If it is ``data``.
        """
        return _no_pointer() if key == "data" else super().get(key, default)


def _no_pointer() -> NoReturn:
    raise BufferError(_NO_POINTER)
