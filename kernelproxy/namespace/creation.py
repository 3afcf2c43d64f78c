"""Making arrays from what the notebook holds."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from kernelproxy.array.conversions import IMPLICIT_CONVERSION
from kernelproxy.calls import dispatch
from kernelproxy.calls.argument_types import ArrayLike, DTypeLike
from kernelproxy.calls.array_core import ArrayCore
from kernelproxy.calls.dispatch import stands_for
from kernelproxy.calls.elsewhere import is_here, lies_alike
from kernelproxy.calls.foreign_arrays import ELSEWHERE
from kernelproxy.calls.supported_dtypes import require_supported
from kernelproxy.namespace import pinned_memory

if TYPE_CHECKING:
    from typing_extensions import CapsuleType

#: Types of most of what nests hold, which stand for themselves.
_HOST_TYPES = frozenset({bool, int, float, complex, str, bytes, type(None), np.ndarray, *np.sctypeDict.values()})
_NESTS = frozenset({list, tuple})
#: DLPack's number for host memory.
_HOST = 1


def array(
    obj: ArrayLike,
    dtype: DTypeLike = None,
    copy: bool | None = True,
    order: str = "K",
    subok: bool = False,
    ndmin: int = 0,
    *,
    blocking: bool = False,
) -> Any:
    """Return a remote array with the contents of ``obj``: a NumPy array, remote array, number, or nest of these.

    The contents of host memory are taken at once, so ``obj`` may be changed as soon as this returns. As in CuPy, they
    are copied whatever ``copy`` says, which speaks of remote arrays only.

    Raises
    ------
    TypeError
        If a nest holds remote arrays and something else, or remote arrays of several shapes.
    ValueError
        If the dtype is none that a device array can have, or if ``copy=False`` cannot be kept for a remote array.
    """
    return _array(stands_for(obj), dtype, copy, order, subok, ndmin)


def _array(obj: Any, dtype: DTypeLike, copy: bool | None, order: str, subok: bool = False, ndmin: int = 0) -> Any:
    """Return what `array` does of what stands for itself."""
    if is_remote(obj):
        if _joined_shape(obj) is None:
            raise TypeError(IMPLICIT_CONVERSION)
        obj = _with_arrays(obj)
        given: dict[str, object] = {"dtype": dtype, "copy": copy, "order": order, "subok": subok, "ndmin": ndmin}
        return dispatch.call("cupy.array", (obj,), given)
    host = _host_array(obj, dtype, order, ndmin)
    pinned_memory.POOL._note_upload(host.nbytes)
    return dispatch.upload(host)


def asarray(
    a: ArrayLike, dtype: DTypeLike = None, order: str | None = None, *, copy: bool | None = None, blocking: bool = False
) -> Any:
    """Return ``a`` as a remote array; ``a`` itself if it is one already and fits."""
    a = stands_for(a)
    if isinstance(a, ArrayCore):
        if is_here(a):
            if copy is not True and _fits(a, dtype, order):
                return a
        elif lies_alike(a, a._layout) and _fits(a, dtype, order):  # a copy is made, whatever ``copy`` says
            return dispatch.call("cupy.ndarray.copy", (a, "K"), {})
        return dispatch.call("cupy.array", (a,), {"dtype": dtype, "copy": copy, "order": order or "K"})
    return _array(a, dtype, True if copy is None else copy, order or "K")


def _fits(a: ArrayCore, dtype: DTypeLike, order: str | None) -> bool:
    """Tell whether ``a`` is of ``dtype`` and lies in ``order``."""
    layout = a._layout
    order = order.upper() if isinstance(order, str) else order
    fits_order = order in (None, "K", "A") or (layout.f_contiguous if order == "F" else layout.c_contiguous)
    return fits_order and (dtype is None or np.dtype(dtype) == layout.dtype)


def asanyarray(
    a: ArrayLike, dtype: DTypeLike = None, order: str | None = None, *, copy: bool | None = None, blocking: bool = False
) -> Any:
    """Return ``a`` as a remote array; the same as `asarray`."""
    return asarray(a, dtype, order, copy=copy)


def ascontiguousarray(a: ArrayLike, dtype: DTypeLike = None) -> Any:
    """Return ``a`` as a C-contiguous remote array of at least one dimension."""
    return _laid_out("cupy.ascontiguousarray", a, dtype, "C")


def asfortranarray(a: ArrayLike, dtype: DTypeLike = None) -> Any:
    """Return ``a`` as an F-contiguous remote array of at least one dimension."""
    return _laid_out("cupy.asfortranarray", a, dtype, "F")


def _laid_out(qualname: str, a: ArrayLike, dtype: DTypeLike, order: str) -> Any:
    a = stands_for(a)
    if not isinstance(a, ArrayCore) or is_here(a):
        made = asarray(a, dtype, order)
    elif _fits(a, dtype, order):
        made = a
    else:  # which CuPy does not bring here: a kernel reads it where it is, if it can
        made = dispatch.call(qualname, (a, dtype), {})
    return made if made.ndim else made.reshape(1)


def frombuffer(*args: Any, **kwargs: Any) -> Any:
    """Return a one-dimensional remote array with the contents of a buffer; parameters as in NumPy."""
    return dispatch.upload(np.frombuffer(*args, **kwargs))


def from_dlpack(array: _SpeaksDlpack, *, device: object = None, copy: bool | None = None) -> Any:
    """Return a remote array with the contents of any array that speaks DLPack and lies in host memory."""
    if isinstance(array, ArrayCore):
        return array
    try:
        host = np.from_dlpack(array, device="cpu")
    except (BufferError, RuntimeError, TypeError) as error:
        if array.__dlpack_device__()[0] == _HOST:
            raise
        raise BufferError(f"{ELSEWHERE.format(type(array).__name__)}. ({error})") from None
    return dispatch.upload(host)


class _SpeaksDlpack(Protocol):
    """An array of any library that speaks DLPack."""

    def __dlpack__(self, *, stream: None = None) -> CapsuleType: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...


class _Capsule:
    """A DLPack capsule as an object that gives it."""

    def __init__(self, capsule: object) -> None:
        self._capsule = capsule

    def __dlpack__(self, **options: object) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return _HOST, 0


def fromDlpack(dltensor: object) -> Any:  # noqa: N802 (CuPy's name)
    """Return a remote array with the contents of a capsule of host memory; the older form of `from_dlpack`."""
    warnings.warn("This function is deprecated and will be removed.", DeprecationWarning, stacklevel=2)
    return dispatch.upload(np.from_dlpack(_Capsule(dltensor)))


#: What `require` understands, and what it means.
_FLAGS = {
    **dict.fromkeys(("C", "C_CONTIGUOUS", "CONTIGUOUS"), "C"),
    **dict.fromkeys(("F", "F_CONTIGUOUS", "FORTRAN"), "F"),
    **dict.fromkeys(("O", "OWNDATA"), "O"),
}


def require(a: ArrayLike, dtype: DTypeLike = None, requirements: Sequence[str] | None = None) -> Any:
    """Return ``a`` as a remote array that is contiguous, or owns its memory, as ``requirements`` say.

    Raises
    ------
    ValueError
        If a requirement is unknown, or "C" and "F" are both wanted.
    """
    unknown = {one for one in requirements or () if one.upper() not in _FLAGS}
    if unknown:
        raise ValueError(f'Incorrect flag "{unknown.pop()}" in requirements')
    wanted = {_FLAGS[one.upper()] for one in requirements or ()}
    if wanted >= {"C", "F"}:
        raise ValueError('Cannot specify both "C" and "F" order')
    order = next(iter(wanted - {"O"}), "A" if wanted else "K")
    return asarray(a, dtype, order, copy=True if "O" in wanted else None)


def _host_array(obj: ArrayLike, dtype: DTypeLike, order: str, ndmin: int) -> np.ndarray[Any, Any]:
    # Not copied: an array that is neither C- nor F-contiguous becomes C-contiguous, which a copy might not be.
    host = np.array(obj, dtype=dtype, copy=None, order=order or "K", ndmin=ndmin)  # type: ignore[call-overload]
    require_supported(host.dtype)
    return host  # type: ignore[no-any-return]


def is_remote(obj: object) -> bool:
    """Tell whether ``obj`` is or stands for a remote array, or is a list or tuple that holds some, however deep."""
    if type(obj) in _NESTS:  # those of numbers, which are most, without a step of Python for each
        kinds = set(map(type, obj))  # type: ignore[call-overload]
        if kinds <= _HOST_TYPES:
            return False
        if kinds <= _NESTS and _HOST_TYPES.issuperset(map(type, chain.from_iterable(obj))):  # type: ignore[arg-type]
            return False
    elif type(obj) in _HOST_TYPES:
        return False
    if isinstance(obj, (list, tuple)):
        return any(map(is_remote, obj))
    return isinstance(obj, ArrayCore) or isinstance(stands_for(obj), ArrayCore)


def _with_arrays(obj: object) -> Any:
    """Return a nest with the arrays that its objects stand for."""
    return [_with_arrays(one) for one in obj] if isinstance(obj, (list, tuple)) else stands_for(obj)


def _joined_shape(obj: object) -> tuple[int, ...] | None:
    """Return the shape of a nest of remote arrays that are all of one shape: CuPy joins these, and no others."""
    obj = stands_for(obj)
    if isinstance(obj, ArrayCore):
        return obj._layout.shape
    shapes = {_joined_shape(one) for one in obj} if isinstance(obj, (list, tuple)) else set()
    if len(shapes) != 1 or not isinstance(obj, (list, tuple)):
        return None
    shape = shapes.pop()
    return None if shape is None else (len(obj), *shape)


def fromfunction(
    function: Callable[..., ArrayLike], shape: Sequence[int], *, dtype: DTypeLike = float, **kwargs: Any
) -> Any:
    """Return ``function`` of each place; as in CuPy, NumPy calls it with NumPy arrays."""
    return asarray(np.fromfunction(function, shape, dtype=dtype, **kwargs))


def fromiter(iter: Iterable[object], dtype: DTypeLike, count: int = -1, **kwargs: Any) -> Any:
    """Return the elements of an iterable, of known ``dtype``, as a one-dimensional remote array."""
    return asarray(np.fromiter(iter, dtype, count, **kwargs))
