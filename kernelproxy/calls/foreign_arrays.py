"""Objects that stand for a remote array: what ``__cupy_get_ndarray__`` returns, or what wraps one of ours.

A wrapper says by ``__cuda_array_interface__`` where its memory is. An address that it had from one of our arrays is an
address of the executor, and the wrapper is a window on that array; any other is of a GPU of this machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np

from kernelproxy.calls.array_core import ArrayCore
from kernelproxy.client import Client, clients, current

#: What is said of an array that is nobody's but this machine's; its class goes into the braces.
ELSEWHERE = (
    "This {} lies on a GPU of this machine, which the remote GPU cannot reach. Copy it to host memory first, as with "
    ".cpu(), .copy_to_host() or .get()"
)


class _HandedOut:
    """Arrays of a client whose addresses the notebook has asked for, by address."""

    def __init__(self, client: Client) -> None:
        self.arrays: WeakValueDictionary[int, ArrayCore] = WeakValueDictionary()


class Wrapped(NamedTuple):
    """A window of this shape, dtype and strides on ``array``, at its first element; None where it has no element."""

    array: ArrayCore | None
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    strides: tuple[int, ...] | None


def hand_out(array: ArrayCore, address: int) -> None:
    """Remember that the notebook was told the ``address`` of ``array``."""
    if address:
        array._client.part(_HandedOut).arrays[address] = array


def behind(value: Any) -> Any:
    """Return the array that ``value`` stands for, as a polynomial does for its coefficients; `Wrapped`; else itself.

    Raises
    ------
    TypeError
        If its memory is that of a GPU of this machine.
    ValueError
        If it is masked, or in the byte order that CuPy does not take.
    """
    array = getattr(value, "__cupy_get_ndarray__", None)
    if array is not None:
        return array()
    if isinstance(value, ArrayCore) or not hasattr(value, "__cuda_array_interface__"):
        return value
    return _wrapped(value, value.__cuda_array_interface__)


def _wrapped(value: object, described: Mapping[str, Any]) -> Wrapped:
    dtype = np.dtype(described["typestr"])
    if dtype.kind == "V" and described.get("descr"):
        dtype = np.dtype(described["descr"])
    if dtype.byteorder == ">":
        raise ValueError("CuPy does not support the big-endian byte-order")
    if described.get("mask") is not None:
        raise ValueError("CuPy currently does not support masked arrays.")
    shape, strides = tuple(described["shape"]), described.get("strides")
    if 0 in shape:
        return Wrapped(None, shape, dtype, strides)
    address = described["data"][0]
    told = [one.part(_HandedOut).arrays.get(address) for one in (current(), *clients())]
    array = next((one for one in told if one is not None), None)
    if array is None:
        raise TypeError(f"{ELSEWHERE.format(type(value).__name__)}; cupy.asarray(...) takes that copy.")
    return Wrapped(array, shape, dtype, strides)
