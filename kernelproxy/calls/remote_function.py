"""A remote function: called like CuPy's, documented by CuPy's own text."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from gpu_backend.opstream import surface
from gpu_backend.wire import values as wire
from kernelproxy.calls import array_core, bins, dispatch, result_classes
from kernelproxy.calls.array_core import ArrayCore
from kernelproxy.calls.documentation import Documented
from kernelproxy.calls.host_prototypes import MAKERS, made_like
from kernelproxy.public_names import maker

#: Functions that are no more than a call of an argument's method: as in CuPy, a NumPy array stays in NumPy and an array
#: of Dask in Dask.
_METHODS = {
    **{
        f"cupy.{name}": name
        for name in (
            *("sum", "prod", "mean", "var", "std", "ptp", "min", "max", "clip", "round", "swapaxes", "transpose"),
            *("reshape", "ravel", "squeeze", "take", "choose", "compress", "copy", "diagonal", "dot", "trace"),
            *("repeat", "argmax", "argmin", "argsort", "argpartition"),
        )
    },
    "cupy.amin": "min",
    "cupy.amax": "max",
}
#: Which argument that is, if it is not the first.
_OWNERS = {"cupy.compress": 1}

#: Functions that CuPy makes of methods and slices of their first argument: a NumPy array stays in NumPy too.
_MADE_OF_METHODS = frozenset(
    f"cupy.{name}"
    for name in ("sort", "partition", "sort_complex", "flip", "fliplr", "flipud", "rot90", "matrix_transpose")
)

#: Functions that go through their first argument once, so that it may be a generator or the values of a dictionary.
_JOINING = frozenset(f"cupy.{name}" for name in ("concatenate", "stack", "hstack", "vstack", "dstack"))


def _has_methods(value: Any) -> bool:
    """Tell whether ``value`` is an array of another library: of NumPy, or one that answers to its functions."""
    return isinstance(value, np.ndarray) or (
        hasattr(type(value), "__array_function__") and not hasattr(value, "__cuda_array_interface__")
    )


def _is_of_users_class(value: Any) -> bool:
    return isinstance(value, ArrayCore) and type(value) is not array_core.array_class


class UniqueAllResult(NamedTuple):
    """What `cupy.unique_all` gives."""

    values: Any
    indices: Any
    inverse_indices: Any
    counts: Any


class UniqueCountsResult(NamedTuple):
    """What `cupy.unique_counts` gives."""

    values: Any
    counts: Any


class UniqueInverseResult(NamedTuple):
    """What `cupy.unique_inverse` gives."""

    values: Any
    inverse_indices: Any


_NAMED = {
    "cupy.unique_all": UniqueAllResult,
    "cupy.unique_counts": UniqueCountsResult,
    "cupy.unique_inverse": UniqueInverseResult,
}


class RemoteFunction(Documented):
    """Stands for one public function of CuPy."""

    def __init__(self, qualname: str, entry: surface.Function | surface.Method | surface.GeneralizedUfunc) -> None:
        self._qualname = qualname
        self._entry = entry
        #: Of a function that is no more than a method: the method's name and which argument has it.
        self._method, self._owner = _METHODS.get(qualname, ""), _OWNERS.get(qualname, 0)
        #: Whether it is the same whatever it is given; but for users' classes, of which there may be some one day.
        self._is_plain = not self._method and not any(
            qualname in those for those in (_MADE_OF_METHODS, MAKERS, _JOINING, _NAMED, (bins.NAME,))
        )
        module, _, name = qualname.rpartition(".")
        self.__module__ = getattr(entry, "home", "") or module
        self.__name__ = self.__qualname__ = getattr(entry, "called", "") or name

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """Call the function."""
        __tracebackhide__ = True
        if self._is_plain and not array_core.is_subclassed:
            return dispatch.call(self._qualname, args, kwargs)
        owner = args[self._owner] if self._method and len(args) > self._owner else None
        if owner is not None and not isinstance(owner, ArrayCore) and _has_methods(owner):
            return self._of(owner, args, kwargs)
        if args and isinstance(args[0], np.ndarray):
            if self._qualname in _MADE_OF_METHODS and type(args[0]) is np.ndarray:
                return getattr(np, self.__name__)(*args, **kwargs)
            if self._qualname in MAKERS:
                return made_like(self._qualname, args[0], args[1:], kwargs)
        if self._qualname in _JOINING and args and type(args[0]) not in (list, tuple) and isinstance(args[0], Iterable):
            args = (list(args[0]), *args[1:])
        if array_core.is_subclassed and owner is not None and _is_of_users_class(owner) and self._is_method_of(kwargs):
            return self._of(owner, args, kwargs)
        if self._qualname == bins.NAME:
            result = bins.bincount(args, kwargs)
        else:
            result = dispatch.call(self._qualname, args, kwargs)
        if array_core.is_subclassed:
            result = result_classes.in_class(self._qualname, args, kwargs, result)
        named = _NAMED.get(self._qualname)
        return result if named is None else named(*result)

    def _of(self, owner: Any, args: tuple[object, ...], kwargs: dict[str, object]) -> Any:
        """Call the method of ``owner``, which is one of ``args``, with the others."""
        return getattr(owner, self._method)(*args[: self._owner], *args[self._owner + 1 :], **kwargs)

    def _is_method_of(self, kwargs: dict[str, object]) -> bool:
        """Tell whether the function is a method of its first argument, one with parameters of these names."""
        entry = surface.load().get(f"cupy.ndarray.{self._method}")
        known = surface.signature_of(entry) if isinstance(entry, surface.Method) else None
        return known is not None and kwargs.keys() <= known.parameters.keys()

    @property
    def __signature__(self) -> inspect.Signature | None:
        return None if isinstance(self._entry, surface.GeneralizedUfunc) else surface.signature_of(self._entry)

    def __repr__(self) -> str:
        return f"<function {self._qualname} (remote)>"

    def __reduce__(self) -> Any:
        return maker(), (self._qualname,)

    def _wire_value(self) -> wire.Name:
        return wire.Name(self._qualname)
