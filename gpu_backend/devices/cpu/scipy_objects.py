"""SciPy's classes under CuPy's names: their methods give arrays, booked, and never NumPy's scalars."""

from __future__ import annotations

import inspect
from typing import Any

from gpu_backend.devices.cpu.call import guarded
from gpu_backend.devices.cpu.table import define_value

#: Operators that are methods to be guarded too.
_OPERATORS = frozenset(
    {f"__{prefix}{name}__" for name in ("add", "sub", "mul", "matmul", "truediv", "pow") for prefix in ("", "r", "i")}
    | {f"__{name}__" for name in ("call", "getitem", "setitem", "neg", "abs", "lt", "le", "gt", "ge", "eq", "ne")}
)


def device_class(base: type, name: str, module: str, members: dict[str, Any] | None = None) -> type:
    """Return a subclass of ``base`` whose public methods are guarded.

    Parameters
    ----------
    name, module
        What the class calls itself: as CuPy's.
    members
        Methods and attributes of its own.
    """
    namespace: dict[str, Any] = {"__module__": module, "__qualname__": name, "__doc__": base.__doc__}
    for attribute in dir(base):
        if attribute.startswith("_") and attribute not in _OPERATORS:
            continue
        member = inspect.getattr_static(base, attribute)
        if inspect.isfunction(member):
            namespace[attribute] = guarded(member)
        elif isinstance(member, (classmethod, staticmethod)):
            namespace[attribute] = type(member)(guarded(member.__func__))
    namespace.update(members or {})
    return type(name, (base,), namespace)


def define_class(base: type, *names: str, module: str, members: dict[str, Any] | None = None) -> type:
    """Make a `device_class` and register it under ``names``."""
    kind = device_class(base, names[0].rpartition(".")[2], module, members)
    define_value(kind, *names)
    return kind
