"""Several devices that the CPU stands for in one process: each has its own books, and reaches no other's arrays.

What a GPU without peer access refuses is refused here, in CuPy's words. Copies between devices go as CuPy has them go.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from gpu_backend.devices.cpu.arrays import Array, as_order
from gpu_backend.devices.cpu.conversion import is_as_wanted
from gpu_backend.devices.cpu.cuda_errors import INVALID_DEVICE, CUDARuntimeError
from gpu_backend.devices.cpu.dtypes import as_dtype
from gpu_backend.devices.cpu.index import without_leading_ones
from gpu_backend.devices.cpu.memory import LEDGER, Ledger

__all__ = ["DEVICES", "Devices"]


#: What only looks at an array, or makes another window on its memory: it is done wherever that lies.
_LOOKING = frozenset(
    [
        *(f"cupy.ndarray.{name}" for name in "data diagonal flat ravel reshape squeeze".split()),
        *(f"cupy.ndarray.{name}" for name in "swapaxes transpose view".split()),
        *(f"cupy.{name}" for name in "may_share_memory ravel reshape".split()),
        *(f"cupy.{name}" for name in "shares_memory squeeze".split()),
        *(f"cupy.{name}_like" for name in "empty full ones zeros".split()),
        "cupy.lib.stride_tricks.as_strided",
    ]
)
#: What brings an array to the current device, which does nothing else or also casts it.
_COPYING, _CASTING = ("cupy.copy", "cupy.ndarray.copy"), ("cupy.array", "cupy.asarray", "cupy.asanyarray")
#: What brings all arrays that it is given, and makes windows on them.
_BRINGING = frozenset(f"cupy.atleast_{ndim}d" for ndim in (1, 2, 3))
#: What copies the bytes of one array into another, be they where they may.
_COPYTO, _SETITEM = "cupy.copyto", "cupy.ndarray.__setitem__"
#: Makes a window, or computes where an array says which elements.
_GETITEM = "cupy.ndarray.__getitem__"
#: May give its argument back; clears memory, or fills it by a kernel.
_ASTYPE, _FILL = "cupy.ndarray.astype", "cupy.ndarray.fill"


class Devices:
    """The devices of this process, and which is current. There is one until `open` says otherwise."""

    def __init__(self) -> None:
        self._books = [LEDGER]
        self.current = 0

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._books)

    def open(self, count: int) -> None:
        """Have so many of them, all empty but the first."""
        self.use(0)
        if count == 1:
            self._books = [LEDGER]
            LEDGER.others = ()
            return
        first = object.__new__(Ledger)
        first.__dict__ = LEDGER.__dict__
        self._books = [first, *(Ledger() for _ in range(count - 1))]
        for books in self._books:
            books.others = [other for other in self._books if other is not books]

    def check(self, number: int) -> int:
        """Return ``number``, or raise CUDA's error if no device has it."""
        if not 0 <= number < len(self._books):
            raise CUDARuntimeError(INVALID_DEVICE)
        return number

    def use(self, number: int) -> None:
        """Have all that is made from now on be on the device ``number``."""
        self.check(number)
        if number != self.current:
            # The books are shared by their contents: every part of the device has its hands on this one object.
            LEDGER.__dict__ = self._books[number].__dict__
            self.current = number

    def books(self, number: int) -> Ledger:
        """Return the books of the device ``number``."""
        return self._books[number]

    def of(self, array: Array) -> int:
        """Return the device that holds ``array``; of one without contents, the current one."""
        return next((number for number, books in enumerate(self._books) if books.has(array)), self.current)

    def hold(self, address: int, nbytes: int) -> bool:
        """Tell whether ``nbytes`` from ``address`` on lie in the memory of one live array of any of them."""
        return any(books.holds(address, nbytes) for books in self._books)

    def confined(self, qualname: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return ``function`` as a function of the current device, which reaches the arrays of no other."""
        if qualname in _LOOKING:
            return function
        if qualname in _COPYING or qualname in _CASTING:
            return self._fetching(qualname, function)
        if qualname in _BRINGING:
            return self._bringing(function)

        @functools.wraps(function)
        def call(*args: object, **kwargs: object) -> Any:
            if _starts_nothing(qualname, args, kwargs):
                return function(*args, **kwargs)
            if (qualname == _SETITEM and _is_copied_by_item(*args)) or (
                qualname == _COPYTO and _is_copied_to(*args, **kwargs)
            ):
                return self._at(self.of(args[0]), self._copied, function, *args, **kwargs)  # type: ignore[arg-type]
            self.require_here(args, kwargs)
            return function(*args, **kwargs)

        return call

    def _fetching(self, qualname: str, function: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(function)
        first = next(iter(signature.parameters))

        @functools.wraps(function)
        def call(*args: object, **kwargs: object) -> Any:
            given = signature.bind(*args, **kwargs)
            given.apply_defaults()
            named = given.arguments
            array = named[first]
            if not isinstance(array, np.ndarray):
                self.require_here(array)  # what is in a list is joined by a kernel
            elif self.of(array) != self.current:
                named[first] = fetched = self._fetched(array, named["order"] or "K")
                if qualname in _COPYING:
                    return fetched
                named["copy"] = None  # it is one already
            return function(*given.args, **given.kwargs)

        return call

    def _bringing(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*arrays: object) -> Any:
            return function(*[self._brought(one) for one in arrays])

        return call

    def _brought(self, array: object) -> object:
        is_elsewhere = isinstance(array, np.ndarray) and self.of(array) != self.current
        return self._fetched(array, "K") if is_elsewhere else array  # type: ignore[arg-type]

    def _copied(self, function: Callable[..., Any], target: Array, *given: Any, **kwargs: Any) -> Any:
        """Copy the last of ``given``, or the first of ``copyto``'s, into ``target``, which is on the current device."""
        place = 0 if isinstance(given[0], np.ndarray) else 1
        source = given[place]
        if not _is_one_piece(target, source) and self.of(source) != self.current:
            source = self._fetched(source, "C")
        return function(target, *given[:place], source, *given[place + 1 :], **kwargs)

    def _fetched(self, array: Array, order: str) -> Array:
        """Return the copy here of an array of another device.

        Raises
        ------
        NotImplementedError
            If it is not in one piece, and is to lie as it does.
        """
        if order.upper() == "K" and not (array.flags.c_contiguous or array.flags.f_contiguous):
            raise NotImplementedError("CuPy cannot copy non-contiguous array between devices.")
        LEDGER.require(array.nbytes)
        copy: Array = np.array(array, order=as_order(order), copy=True, subok=False)
        LEDGER.hold(copy)
        return copy

    def _at(self, number: int, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        before = self.current
        self.use(number)
        try:
            return function(*args, **kwargs)
        finally:
            self.use(before)

    def require_here(self, *values: object) -> None:
        """Raise what CuPy raises if an array among ``values`` is on another device than the current one."""
        for array in _arrays_in(values):
            if (where := self.of(array)) != self.current:
                raise ValueError(
                    f"The device where the array resides ({where}) is different from the current device "
                    f"({self.current}). Peer access is unavailable between these devices."
                )


def _starts_nothing(qualname: str, args: tuple[object, ...], kwargs: dict[str, object]) -> bool:
    """Tell whether a call starts no kernel: it makes a window, gives an array back, or clears memory."""
    if qualname == _GETITEM:
        return _is_window(*args[1:])
    if qualname == _ASTYPE:
        return _is_given_back(*args, **kwargs)  # type: ignore[arg-type]
    if qualname == _FILL and len(args) == 2:
        return _is_cleared(*args)
    return qualname == _SETITEM and len(args) == 3 and _is_window(args[1]) and _is_cleared(args[0], args[2], args[1])


def _is_given_back(
    a: Array, dtype: object, order: str | None = "K", casting: object = None, subok: object = None, copy: object = True
) -> bool:
    return not copy and is_as_wanted(a, as_dtype(dtype), as_order(order or "K"))


def _is_cleared(array: object, value: object, key: object = ...) -> bool:
    """Tell whether CuPy clears the bytes of ``array[key]`` to fill it with the scalar ``value``."""
    if isinstance(value, (np.ndarray, list, tuple)) or not isinstance(array, np.ndarray):
        return False
    target = np.asarray(array[key])  # type: ignore[call-overload]
    return target.flags.c_contiguous and target.dtype.kind != "V" and bool(np.asarray(value, target.dtype) == 0)


def _is_window(key: object = None) -> bool:
    """Tell whether ``key`` has neither an array in it nor what CuPy makes one of."""
    parts = key if isinstance(key, tuple) else (key,)
    return not any(isinstance(part, (np.ndarray, list, tuple)) for part in parts)


def _is_copied_by_item(target: object = None, key: object = None, source: object = None) -> bool:
    """Tell whether CuPy copies bytes for ``target[key] = source``, and starts nothing that reads another device."""
    if not isinstance(target, np.ndarray) or not isinstance(source, np.ndarray):
        return False
    is_whole = key is Ellipsis or (isinstance(key, slice) and key == slice(None))
    source = without_leading_ones(source)
    is_alike = (target.shape, target.strides, target.dtype) == (source.shape, source.strides, source.dtype)
    return is_whole and is_alike and target.flags.c_contiguous


def _is_copied_to(target: object = None, source: object = None, casting: object = None, where: object = None) -> bool:
    """Tell whether CuPy copies ``source`` to the device of ``target``, if it is not there."""
    return isinstance(target, np.ndarray) and isinstance(source, np.ndarray) and where is None


def _is_one_piece(target: Array, source: Array) -> bool:
    """Tell whether CuPy copies the bytes of ``source`` as they lie."""
    to, of = target.flags, source.flags
    is_alike = (to.c_contiguous and of.c_contiguous) or (to.f_contiguous and of.f_contiguous)
    return is_alike and target.dtype == source.dtype and target.size == source.size


def _arrays_in(value: object) -> Iterator[Array]:
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, (tuple, list)):
        yield from _of_all(value)
    elif isinstance(value, dict):
        yield from _of_all(value.values())


def _of_all(values: Iterable[object]) -> Iterator[Array]:
    for one in values:
        yield from _arrays_in(one)


#: Those of this process.
DEVICES = Devices()
