"""Several devices that the CPU stands for in one process: each has its own books, and reaches no other's arrays.

What a GPU without peer access refuses is refused here, in CuPy's words. Copies between devices go as CuPy has them go.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from gpu_backend.devices.cpu.cuda_errors import INVALID_DEVICE, CUDARuntimeError
from gpu_backend.devices.cpu.memory import LEDGER, Ledger

__all__ = ["DEVICES", "Devices"]

Array = np.ndarray[Any, Any]

#: What only looks at an array, or makes another window on its memory: it is done wherever that lies.
_LOOKING = frozenset(
    f"cupy.ndarray.{name}"
    for name in (
        "data",
        "flat",
        "reshape",
        "ravel",
        "squeeze",
        "swapaxes",
        "transpose",
        "view",
        "diagonal",
        "__getitem__",
    )
) | {"cupy.may_share_memory", "cupy.shares_memory"}
#: What brings an array to the current device first.
_FETCHING = frozenset(
    ("cupy.array", "cupy.asarray", "cupy.asanyarray", "cupy.asfortranarray", "cupy.copy", "cupy.ndarray.copy")
)
#: What copies the bytes of one array into another, be they where they may.
_COPYTO, _SETITEM = "cupy.copyto", "cupy.ndarray.__setitem__"


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
        if qualname in _FETCHING:
            return self._fetching(function)

        @functools.wraps(function)
        def call(*args: object, **kwargs: object) -> Any:
            if qualname in (_COPYTO, _SETITEM) and self._copies(qualname, *args):
                args = (args[0], *map(self._fetched, args[1:]))
                return self._at(self.of(args[0]), function, *args, **kwargs)  # type: ignore[arg-type]
            for array in _arrays_in((args, kwargs)):
                self._require_here(array)
            return function(*args, **kwargs)

        return call

    def _fetching(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(array: object, *args: object, **kwargs: object) -> Any:
            return function(self._fetched(array), *args, **kwargs)

        return call

    def _copies(self, qualname: str, target: object = None, *given: object) -> bool:
        """Tell whether CuPy would copy from one device to another here, and start nothing that reads the other's."""
        source = given[-1] if qualname == _SETITEM and given else next(iter(given), None)
        if not isinstance(target, np.ndarray) or not isinstance(source, np.ndarray):
            return False
        if qualname == _COPYTO:
            return True
        is_whole = given[0] is Ellipsis or (isinstance(given[0], slice) and given[0] == slice(None))
        is_alike = (target.shape, target.strides, target.dtype) == (source.shape, source.strides, source.dtype)
        return is_whole and is_alike and target.flags.c_contiguous

    def _fetched(self, value: Any) -> Any:
        """Return ``value``; of an array of another device, its copy here."""
        if not isinstance(value, np.ndarray) or self.of(value) == self.current:
            return value
        copy = np.array(value, order="K", copy=True, subok=False)
        LEDGER.require(copy.nbytes)
        LEDGER.hold(copy)
        return copy

    def _at(self, number: int, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        before = self.current
        self.use(number)
        try:
            return function(*args, **kwargs)
        finally:
            self.use(before)

    def _require_here(self, array: Array) -> None:
        if (where := self.of(array)) != self.current:
            raise ValueError(
                f"The device where the array resides ({where}) is different from the current device ({self.current}). "
                "Peer access is unavailable between these devices."
            )


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
