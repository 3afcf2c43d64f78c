"""The methods of remote arrays that compute: each is forwarded under its own public name."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from gpu_backend.opstream import surface
from kernelproxy import compiled
from kernelproxy.array.flat_iterator import flatiter
from kernelproxy.array.numpy_protocols import array_function, array_ufunc
from kernelproxy.calls import array_core, dispatch, result_classes
from kernelproxy.calls.argument_types import ArrayLike
from kernelproxy.calls.array_core import ArrayCore
from kernelproxy.calls.dispatch import stands_for
from kernelproxy.public_names import make


class Methods(ArrayCore):
    """Methods of ``cupy.ndarray`` that need no care of their own; filled from the surface below."""

    __slots__ = ()

    def __array_ufunc__(self, function: np.ufunc, method: str, *inputs: object, **kwargs: object) -> Any:
        return array_ufunc(function, method, inputs, kwargs)

    def __array_function__(
        self,
        function: Callable[..., object],
        types: Iterable[type],
        args: tuple[object, ...],
        kwargs: dict[str, object],
    ) -> Any:
        return array_function(function, types, args, kwargs)

    def fill(self, value: ArrayLike) -> None:
        """Set every element to ``value``."""
        value = stands_for(value)
        if isinstance(value, np.ndarray) and not value.ndim and self._layout.dtype.kind != "V":
            value = value.astype(self._layout.dtype)[()]  # warns of what is lost, as CuPy does
        elif isinstance(value, ArrayCore) and not value.shape and value.dtype.kind == "c" != self._layout.dtype.kind:
            value = value.astype(self._layout.dtype)
        dispatch.call("cupy.ndarray.fill", (self, value), {})

    @property
    def data(self) -> Any:
        """The pointer to the first element, on the device."""
        pointer = dispatch.ask_object(".getattr", self, "data")
        pointer._array = self
        return pointer

    @property
    def cstruct(self) -> Any:
        """What kernels get of the array; out of reach.

        Raises
        ------
        AttributeError
            Always: it is an address in the process that computes.
        """
        raise AttributeError("cupy.ndarray.cstruct is an address in the process that computes; pass the array itself.")

    @property
    def device(self) -> Any:
        """The device that holds the array."""
        return make("cupy.cuda.Device")(array_core.device_of(self))

    @property
    def flat(self) -> Any:
        """An iterator over the elements."""
        return flatiter(self)


def _forward(name: str) -> Any:
    qualname = f"cupy.ndarray.{name}"

    def method(self: Any, *args: object, **kwargs: object) -> Any:
        return dispatch.call(qualname, (self, *args), kwargs)

    method.__name__ = name
    method.__qualname__ = f"ndarray.{name}"
    method.__module__ = "cupy"
    entry = surface.load()[qualname]
    if isinstance(entry, surface.Method):
        method.__doc__ = entry.summary or None
        method.__signature__ = surface.signature_with_self(entry)  # type: ignore[attr-defined]
    return compiled.quick("method", method, qualname)


def _forward_to_ufunc(name: str) -> Any:
    """Return the method ``name``, which is a ufunc in CuPy: what it makes of a user's subclass is of that."""
    forward = _forward(name)

    @functools.wraps(forward)
    def method(self: Any, *args: object, **kwargs: object) -> Any:
        made = forward(self, *args, **kwargs)
        if array_core.is_subclassed:
            return result_classes.in_class(f"cupy.ndarray.{name}", (self, *args), kwargs, made)
        return made

    return method


def _is_forwarded(name: str) -> bool:
    entry = surface.load()[f"cupy.ndarray.{name}"]
    return isinstance(entry, surface.Method) and not name.startswith("_") and not hasattr(Methods, name)


for _name in filter(_is_forwarded, surface.load().below("cupy.ndarray")):
    _is_ufunc = f"cupy.ndarray.{_name}" in result_classes.told_of()
    setattr(Methods, _name, (_forward_to_ufunc if _is_ufunc else _forward)(_name))
