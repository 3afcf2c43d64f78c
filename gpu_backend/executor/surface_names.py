"""Which names an op may use, and what they are on this device: the executor's allow-list."""

from __future__ import annotations

import functools
import types
from typing import Any

from gpu_backend.executor.devices.base import Device
from gpu_backend.surface import Class, Entry, Ufunc, load

#: What CuPy gives where it gives a function, such as the solver of ``factorized``. It stays, and can be called.
_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, types.MethodType, functools.partial)


#: Private functions of CuPy's that choose how its public ones compute. There is no other way to choose.
COMPUTING_SETTINGS = frozenset(
    f"cupy._core.{verb}_{what}"
    for verb in ("get", "set")
    for what in ("compute_type", "elementwise_accelerators", "reduction_accelerators", "routine_accelerators")
)


class SurfaceNames:
    """Resolves public names, each once."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._surface = load()
        #: Last names of public classes: an object of a private class goes by its nearest public ancestor.
        self._class_names = {name.rpartition(".")[2] for name, entry in self._surface.items() if _is_class(entry)}

    def resolve(self, qualname: str) -> Any:
        """Return the object called ``qualname`` on this device.

        Raises
        ------
        AttributeError
            If the name is not public, not allowed from afar, or not there on this device.
        """
        if qualname in COMPUTING_SETTINGS:
            return self._device.resolve(qualname)
        if not self._surface.is_public(qualname) and not self._is_ufunc_method(qualname):
            raise AttributeError(f"{qualname} is not a public name of CuPy {self._surface.version}.")
        if self._surface.is_public(qualname) and not self._surface.is_remote(qualname):
            raise AttributeError(f"{qualname} works on the files or addresses of one process; it runs in the notebook.")
        return self._device.resolve(qualname)

    def _is_ufunc_method(self, qualname: str) -> bool:
        owner, _, method = qualname.rpartition(".")
        return isinstance(self._surface.get(owner), Ufunc) and self._surface.is_public(f"cupy.ufunc.{method}")

    def type_name(self, value: object) -> str | None:
        """Return the public name of the type of a result that stays remote; None if it should go by value."""
        kind = type(value)
        if kind in _FUNCTIONS:
            return "builtins.function"
        module = kind.__module__ or ""
        if module.split(".")[0] in ("cupy", "cupyx", "cupy_backends", "scipy", "gpu_backend") and not isinstance(
            value, (tuple, str, int, float)
        ):
            public = next((one for one in kind.__mro__ if one.__name__ in self._class_names), kind)
            return f"{public.__module__}.{public.__qualname__}"
        return None


def _is_class(entry: Entry) -> bool:
    return isinstance(entry, Class)
