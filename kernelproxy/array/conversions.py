"""Remote arrays to host values and back: each way costs one round trip, and says so by being called explicitly."""

from __future__ import annotations

import pickle
import warnings
from os import PathLike
from typing import IO, Any

import numpy as np

from gpu_backend.opstream.layout import Layout
from kernelproxy.array.interface import CudaArrayInterface
from kernelproxy.calls import dispatch, reading, transfer
from kernelproxy.calls.argument_types import ArrayLike, DTypeLike, HostArray, StreamLike
from kernelproxy.calls.array_core import ArrayCore, device_of
from kernelproxy.calls.brought import on_device
from kernelproxy.public_names import make

_EMPTY_TRUTH = (
    "The truth value of an empty array is ambiguous. Returning False, but in future this will result in an error. Use "
    "`array.size > 0` to check that an array is not empty."
)
#: What CuPy says where NumPy asks for an array's contents.
IMPLICIT_CONVERSION = (
    "Implicit conversion to a NumPy array is not allowed. Please use `.get()` to construct a NumPy array explicitly."
)


class Conversions(ArrayCore):
    """`get`, `set`, `item`, `int()`, `repr()`, pickling, and the protocols of other libraries."""

    __slots__ = ()

    def get(
        self, stream: StreamLike = None, order: str = "C", out: HostArray | None = None, blocking: bool = True
    ) -> Any:
        """Return the contents as a NumPy array in memory ``order``; with ``out`` they are written there."""
        if out is not None:
            host = dispatch.contents(self, out)
            if host is not out:
                _check_out(out, host)
                out[...] = host
            return out
        order = order.upper()
        if order not in ("C", "F", "A", "K") and self._layout.size:  # in this order: a size may have to be asked for
            raise ValueError(f"unsupported order: {order}")
        host = dispatch.contents(self)
        if order == "F" or (order in ("A", "K") and self._layout.f_contiguous and not self._layout.c_contiguous):
            return np.asfortranarray(host)
        return host

    def set(self, arr: ArrayLike, stream: StreamLike = None) -> None:
        """Copy the NumPy array ``arr``, of the same shape and dtype, into this array."""
        if not isinstance(arr, np.ndarray):
            raise TypeError("Only numpy.ndarray can be set to cupy.ndarray")
        if self._layout.dtype != arr.dtype:
            raise TypeError(f"{arr.dtype} array cannot be set to {self._layout.dtype} array")
        if self._layout.shape != arr.shape:
            raise ValueError(f"Shape mismatch. Old shape: {self._layout.shape}, new shape: {arr.shape}")
        if not (self._layout.c_contiguous or self._layout.f_contiguous):
            raise RuntimeError("Cannot set to non-contiguous array")
        transfer.write(self, arr)

    def item(self) -> Any:
        """Return the only element as a Python scalar."""
        if self._layout.size != 1:
            raise ValueError("can only convert an array of size 1 to a Python scalar")
        return reading.number(self)

    def tolist(self) -> Any:
        """Return the contents as nested Python lists."""
        return dispatch.contents(self).tolist()

    def tobytes(self, order: str = "C") -> bytes:
        """Return the contents as bytes."""
        return self.get(order="A").tobytes(order)  # type: ignore[no-any-return]

    def tofile(self, fid: str | PathLike[str] | IO[bytes], sep: str = "", format: str = "%s") -> None:
        """Write the contents to a file on this machine, as NumPy does."""
        self.get().tofile(fid, sep, format)

    def dump(self, file: IO[bytes]) -> None:
        """Pickle the array to ``file``, a file on this machine that is open for writing bytes."""
        pickle.dump(self, file, -1)

    def dumps(self) -> bytes:
        """Return the array, pickled."""
        return pickle.dumps(self, -1)

    def __bool__(self) -> bool:
        if self._layout.size == 0:
            warnings.warn(_EMPTY_TRUTH, DeprecationWarning, stacklevel=2)
            return False
        is_record = self._layout.dtype.kind == "V"  # as Python has it, it is a tuple, or bytes: true whatever it holds
        return bool(dispatch.contents(self) if is_record else reading.number(self))

    def __int__(self) -> int:
        return int(self._contents_as_number())

    def __float__(self) -> float:
        return float(self._contents_as_number())

    def __complex__(self) -> complex:
        return complex(self._contents_as_number())

    def __bytes__(self) -> bytes:
        return bytes(self.get())

    def __oct__(self) -> str:
        return oct(int(self))

    def __hex__(self) -> str:
        return hex(int(self))

    def _contents_as_number(self) -> Any:
        # An array with axes is NumPy's to judge: it may take one element for a number, warn of it, or refuse it.
        is_number = type(self._layout) is Layout and not self._layout.shape  # what has no shape yet is read whole
        return reading.number(self) if is_number else dispatch.contents(self)

    def __repr__(self) -> str:
        return repr(self.get())

    def __str__(self) -> str:
        return str(self.get())

    def __format__(self, spec: str) -> str:
        return format(self.get()[()], spec)

    def __copy__(self) -> Any:
        return dispatch.call("cupy.ndarray.copy", (self,), {})

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        with on_device(self._client, device_of(self)):  # it stays on its device, as in CuPy
            copied = dispatch.call("cupy.ndarray.copy", (self,), {})
        memo[id(self)] = copied
        return copied

    def __reduce__(self) -> Any:
        return _rebuild, (self.get(order="A"),)

    def __array__(self, dtype: DTypeLike = None, /, **keywords: object) -> Any:
        raise TypeError(IMPLICIT_CONVERSION)

    # --- other libraries ----------------------------------------------------------------------------------------------

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, device_of(self))

    def __dlpack__(
        self, *, stream: StreamLike = None, max_version: Any = None, dl_device: Any = None, copy: Any = None
    ) -> Any:
        if dl_device is not None and int(dl_device[0]) == 1:
            return self.get().__dlpack__()
        raise BufferError(
            "This array lives on a remote GPU, and a local library cannot be given its memory. "
            "Use from_dlpack(x, device='cpu') or x.get() to hand over a copy."
        )

    toDlpack = __dlpack__  # noqa: N815 (CuPy's name)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return CudaArrayInterface(self)


def _check_out(out: HostArray, host: HostArray) -> None:
    if not isinstance(out, np.ndarray):
        raise TypeError("Only numpy.ndarray can be obtained from cupy.ndarray")
    if out.dtype != host.dtype:
        raise TypeError(f"{out.dtype} array cannot be obtained from {host.dtype} array")
    if out.shape != host.shape:
        raise ValueError(f"Shape mismatch. Expected shape: {host.shape}, actual shape: {out.shape}")
    if not (out.flags.c_contiguous or out.flags.f_contiguous):
        raise RuntimeError("`out` cannot be specified when copying to non-contiguous ndarray")


def _rebuild(host: HostArray) -> Any:
    return make("cupy.array")(host)
