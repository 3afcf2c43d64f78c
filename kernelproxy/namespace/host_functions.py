"""Functions that need no device: they look at metadata, print, or act on the notebook's own memory."""

from __future__ import annotations

import contextlib
import functools
import importlib
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeAlias

import numpy as np

from kernelproxy.calls import dispatch
from kernelproxy.calls.argument_types import ArrayLike, DTypeLike, HostArray, StreamLike
from kernelproxy.calls.array_core import ArrayCore, handle_of
from kernelproxy.calls.dispatch import stands_for
from kernelproxy.calls.each_device import on_each_device
from kernelproxy.calls.error_state import IGNORE, RAISE, ErrorState
from kernelproxy.calls.remote_object import RemoteObject, are_parts
from kernelproxy.client import Client, current

if TYPE_CHECKING:
    import numpy.typing as npt

base_repr, binary_repr = np.base_repr, np.binary_repr
format_float_positional, format_float_scientific = np.format_float_positional, np.format_float_scientific
get_printoptions, set_printoptions, printoptions = np.get_printoptions, np.set_printoptions, np.printoptions
issubdtype, isdtype, mintypecode, typename = np.issubdtype, np.isdtype, np.mintypecode, np.typename
promote_types, broadcast_shapes, isscalar, iterable = np.promote_types, np.broadcast_shapes, np.isscalar, np.iterable


#: Trouble with floating-point numbers, of which a GPU says nothing.
_UNSEEN = ("divide", "over", "under", "invalid")
#: Into how many parts, or where to cut.
Sections: TypeAlias = "int | np.integer | Iterable[SupportsIndex]"


def _dtype_or_value(value: object) -> Any:
    return value._layout.dtype if isinstance(value, ArrayCore) else value


def _host(value: ArrayLike) -> Any:
    return value.get() if isinstance(value, ArrayCore) else value


def asnumpy(
    a: ArrayLike, stream: StreamLike = None, order: str = "C", out: HostArray | None = None, *, blocking: bool = True
) -> np.ndarray[Any, Any]:
    """Return ``a``, remote or not, as a NumPy array. One round trip for a remote one."""
    a = stands_for(a)
    if isinstance(a, ArrayCore):
        return a.get(stream, order, out)  # type: ignore[no-any-return]
    host = np.asarray(_host(a), order=order)  # type: ignore[call-overload]
    if out is None:
        return host  # type: ignore[no-any-return]
    np.copyto(out, host)
    return out


def array_repr(
    arr: ArrayLike, max_line_width: int | None = None, precision: int | None = None, suppress_small: bool | None = None
) -> str:
    """Return what ``repr`` of the array shows."""
    return np.array_repr(_host(arr), max_line_width, precision, suppress_small)


def array_str(
    arr: ArrayLike, max_line_width: int | None = None, precision: int | None = None, suppress_small: bool | None = None
) -> str:
    """Return what ``str`` of the array shows."""
    return np.array_str(_host(arr), max_line_width, precision, suppress_small)


def array2string(a: ArrayLike, *args: Any, **kwargs: Any) -> str:
    """Return the array as text; parameters as in NumPy."""
    return np.array2string(_host(a), *args, **kwargs)


def result_type(*arrays_and_dtypes: ArrayLike | DTypeLike) -> np.dtype[Any]:
    """Return the dtype that NEP 50 gives these arrays, dtypes and scalars together."""
    return np.result_type(*map(_dtype_or_value, arrays_and_dtypes))


def min_scalar_type(a: ArrayCore | npt.ArrayLike) -> np.dtype[Any]:
    """Return the smallest dtype that holds a scalar; for arrays, their dtype."""
    return a._layout.dtype if isinstance(a, ArrayCore) else np.min_scalar_type(a)


def can_cast(from_: ArrayLike | DTypeLike, to: DTypeLike, casting: str = "safe") -> bool:
    """Tell whether the cast is allowed under the rule ``casting``."""
    return bool(np.can_cast(_dtype_or_value(from_), to, casting))  # type: ignore[arg-type]


def common_type(*arrays: ArrayCore | HostArray) -> Any:
    """Return the inexact type that all arrays can be cast to."""
    return np.common_type(*(np.empty(0, array.dtype) for array in arrays))


def iscomplexobj(x: ArrayCore | npt.ArrayLike) -> bool:
    """Tell whether the dtype is complex."""
    return bool(np.issubdtype(x.dtype, np.complexfloating)) if isinstance(x, ArrayCore) else np.iscomplexobj(x)


def isrealobj(x: ArrayCore | npt.ArrayLike) -> bool:
    """Tell whether the dtype is not complex."""
    return not iscomplexobj(x)


def isfortran(a: ArrayCore | HostArray) -> bool:
    """Tell whether the array is F- and not C-contiguous."""
    return bool(a.flags.fnc)


def ndim(a: ArrayCore | npt.ArrayLike) -> int:
    """Return the number of axes."""
    return a._layout.ndim if isinstance(a, ArrayCore) else np.ndim(a)


def shape(a: ArrayCore | npt.ArrayLike) -> tuple[int, ...]:
    """Return the lengths of the axes."""
    return a._layout.shape if isinstance(a, ArrayCore) else np.shape(a)


def size(a: ArrayCore | npt.ArrayLike, axis: int | None = None) -> int:
    """Return the number of elements, or the length of ``axis``."""
    lengths = shape(a)
    return int(np.prod(lengths)) if axis is None else lengths[axis]


def may_share_memory(a: object, b: object, max_work: int | str | None = None) -> bool:
    """Tell whether the arrays are windows on overlapping stretches of the same memory.

    Raises
    ------
    NotImplementedError
        If ``max_work`` is given: as in CuPy, the answer is always that of the bounds.
    """
    if max_work is not None:
        raise NotImplementedError("Only supported for `max_work` is `None`")
    if not isinstance(a, ArrayCore) or not isinstance(b, ArrayCore):
        return False
    if a._client is not b._client:
        return False
    if handle_of(a._ref) != handle_of(b._ref):
        return are_parts(a, b) and bool(dispatch.call("cupy.may_share_memory", (a, b), {}))
    (a_low, a_high), (b_low, b_high) = _bounds(a), _bounds(b)
    return a_low < b_high and b_low < a_high


def shares_memory(a: object, b: object, max_work: int | str | None = None) -> bool:
    """Tell whether the arrays have an element's memory in common; by ``"MAY_SHARE_BOUNDS"``, whether they may.

    Raises
    ------
    NotImplementedError
        If ``max_work`` is a number: as in CuPy, it is that word, ``"MAY_SHARE_EXACT"`` or None.
    """
    may = may_share_memory(a, b)
    if max_work == "MAY_SHARE_BOUNDS":
        return may
    if max_work not in (None, "MAY_SHARE_EXACT"):
        raise NotImplementedError("Not supported for integer `max_work`.")
    if not may or not isinstance(a, ArrayCore) or not isinstance(b, ArrayCore):
        return False
    if handle_of(a._ref) != handle_of(b._ref):
        return bool(dispatch.call("cupy.shares_memory", (a, b), {}))
    reach = max(_bounds(a)[1], _bounds(b)[1])
    memory = np.empty(reach, np.uint8)  # never touched: only how the windows lie in it is looked at
    return bool(np.shares_memory(_window(memory, a), _window(memory, b)))


def _window(memory: HostArray, a: ArrayCore) -> np.ndarray[Any, Any]:
    layout = a._layout
    return np.ndarray(
        layout.shape, np.dtype((np.void, layout.itemsize)), memory, getattr(a._ref, "offset", 0), layout.strides
    )


def _bounds(a: ArrayCore) -> tuple[int, int]:
    start = getattr(a._ref, "offset", 0)
    layout = a._layout
    if layout.size == 0:
        return start, start
    reach = [(length - 1) * stride for length, stride in zip(layout.shape, layout.strides, strict=True)]
    low = start + sum(one for one in reach if one < 0)
    return low, start + sum(one for one in reach if one > 0) + layout.itemsize


def get_array_module(*args: object) -> Any:
    """Return the module whose functions fit the arguments: ``cupy`` if any of them is remote, else ``numpy``."""
    remote = any(isinstance(one, (ArrayCore, RemoteObject)) for one in args)
    return importlib.import_module("cupy") if remote else np


def get_scipy_module(*args: object) -> Any:
    """Return the module whose functions fit the arguments: ``cupyx.scipy`` if any of them is remote, else ``scipy``."""
    return importlib.import_module("scipy" if get_array_module(*args) is np else "cupyx.scipy")


def is_available() -> bool:
    """Tell whether there is a device: True when the pool can be reached."""
    return bool(current().session.is_connected)


def copyto(dst: ArrayCore, src: ArrayLike, casting: str = "same_kind", where: ArrayLike | None = None) -> None:
    """Copy values into ``dst``, broadcasting; parameters as in CuPy."""
    if isinstance(where, np.ndarray):
        raise TypeError(f"Unsupported type {type(where)}")
    dispatch.call("cupy.copyto", (dst, src, casting, where), {})


def real(val: ArrayLike) -> Any:
    """Return the real part: a view for a complex array."""
    return val.real if isinstance(val, ArrayCore) else dispatch.call("cupy.real", (val,), {})


def imag(val: ArrayLike) -> Any:
    """Return the imaginary part: a view for a complex array."""
    return val.imag if isinstance(val, ArrayCore) else dispatch.call("cupy.imag", (val,), {})


def clear_memo() -> None:
    """Forget the results of memoised functions."""
    on_each_device(lambda client: client.part(_Memos).results.clear())


class _Memos:
    """Results of memoised functions: a client's, as its arrays may be among them."""

    def __init__(self, client: Client) -> None:
        self.results: dict[Any, Any] = {}


def memoize(for_each_device: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that keeps the results of a function by its arguments."""

    def decorate(function: Callable[..., object]) -> Callable[..., Any]:
        @functools.wraps(function)
        def remembered(*args: object, **kwargs: object) -> Any:
            key = (function, args, frozenset(kwargs.items()))
            memos = current().part(_Memos).results
            if key not in memos:
                memos[key] = function(*args, **kwargs)
            return memos[key]

        return remembered

    return decorate


def show_config(*, _full: bool = False) -> None:
    """Print what computes and where."""
    opened = current().session
    for name, value in opened.device.items():
        print(f"{name:<20}: {value}")  # noqa: T201 (printing is what it is for)


# --- splitting: views, so nothing is sent ----------------------------------------------------------------------------


def array_split(ary: ArrayCore, indices_or_sections: Sections, axis: int = 0) -> list[Any]:
    """Split into views of nearly equal or given lengths along ``axis``."""
    view: Any = ary  # indexing is of the class on top
    length = ary.shape[axis]
    if isinstance(indices_or_sections, (int, np.integer)):
        sections = int(indices_or_sections)
        if sections <= 0:
            raise ValueError("number sections must be larger than 0.")
        each, extras = divmod(length, sections)
        bounds = np.cumsum([0, *([each + 1] * extras), *([each] * (sections - extras))]).tolist()
    else:
        bounds = [0, *(int(one) for one in indices_or_sections), length]
    before = (slice(None),) * (axis % ary.ndim)
    return [view[(*before, slice(start, stop))] for start, stop in itertools.pairwise(bounds)]


def split(ary: ArrayCore, indices_or_sections: Sections, axis: int = 0) -> list[Any]:
    """Split into views of equal or given lengths along ``axis``."""
    if ary.ndim <= axis:
        raise IndexError("Axis exceeds ndim")
    if isinstance(indices_or_sections, (int, np.integer)) and ary.shape[axis] % indices_or_sections:
        raise ValueError(
            "indices_or_sections must divide the size along the axes.\n"
            "If you want to split the array into non-equally-sized arrays, use array_split instead."
        )
    return array_split(ary, indices_or_sections, axis)


def vsplit(ary: ArrayCore, indices_or_sections: Sections) -> list[Any]:
    """Split along the first axis."""
    if ary.ndim <= 1:
        raise ValueError("Cannot vsplit an array with less than 2 dimensions")
    return split(ary, indices_or_sections, 0)


def hsplit(ary: ArrayCore, indices_or_sections: Sections) -> list[Any]:
    """Split along the second axis; along the only one of a vector."""
    if ary.ndim == 0:
        raise ValueError("Cannot hsplit a zero-dimensional array")
    return split(ary, indices_or_sections, 0 if ary.ndim == 1 else 1)


def dsplit(ary: ArrayCore, indices_or_sections: Sections) -> list[Any]:
    """Split along the third axis."""
    if ary.ndim <= 2:
        raise ValueError("Cannot dsplit an array with less than 3 dimensions")
    return split(ary, indices_or_sections, 2)


# --- error state -----------------------------------------------------------------------------------------------------


def geterr() -> dict[str, Any]:
    """Return how this thread has numerical trouble handled."""
    return {**dict.fromkeys(_UNSEEN), "linalg": current().part(ErrorState).linalg}


def seterr(
    *, divide: str | None = None, over: str | None = None, under: str | None = None, invalid: str | None = None,
    linalg: str | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Set how numerical trouble is handled for this thread; return what was before.

    Raises
    ------
    NotImplementedError
        For trouble with floating-point numbers, which a GPU does not report, and for words that say nothing.
    """
    before = geterr()
    if (divide, over, under, invalid) != (None,) * 4 or linalg not in (None, IGNORE, RAISE):
        raise NotImplementedError
    if linalg is not None:
        chosen = linalg
        on_each_device(lambda client: client.part(ErrorState).choose(chosen))
    return before


@contextlib.contextmanager
def errstate(
    *, divide: str | None = None, over: str | None = None, under: str | None = None, invalid: str | None = None,
    linalg: str | None = None,
) -> Iterator[None]:  # fmt: skip
    """Handle numerical trouble in another way inside the ``with`` block."""
    before = seterr(divide=divide, over=over, under=under, invalid=invalid, linalg=linalg)
    try:
        yield
    finally:
        seterr(**before)
