"""What a client must never hold: of each object that it got into the heap, whether it is a way out."""

from __future__ import annotations

import ctypes
import io
import os
import socket
import sys
import threading
import types
import weakref
from typing import Any

import numpy as np

from gpu_backend.opstream.surface import load

_CODE = (
    types.ModuleType, types.FrameType, types.CodeType, types.TracebackType, types.GeneratorType, types.CoroutineType,
    types.AsyncGeneratorType, types.CellType, types.MappingProxyType, types.GetSetDescriptorType,
    types.MemberDescriptorType, types.MethodDescriptorType, types.WrapperDescriptorType,
    types.ClassMethodDescriptorType, property, weakref.ReferenceType,
)  # fmt: skip
_SYSTEM = (io.IOBase, os.DirEntry, socket.socket, threading.Thread, ctypes.CDLL, ctypes._SimpleCData, ctypes.Array,
           ctypes.Structure, ctypes._CFuncPtr)  # type: ignore[attr-defined]  # fmt: skip
_POINTERS = type(np.empty(0).ctypes)
#: Modules whose functions read, write, run or import, or hand out what does.
_DOORS = frozenset(
    "builtins os posix sys io _io subprocess ctypes _ctypes importlib _frozen_importlib _imp pickle _pickle marshal "
    "socket _socket inspect gc shutil tempfile pathlib runpy code types operator functools".split()
)
#: Of those, what does nothing but compute. Methods of values are looked at by whose they are.
_HARMLESS = frozenset("abs divmod pow round len hash repr ascii sum min max any all sorted".split())
#: The packages whose objects a session is made of.
_OURS = frozenset(("builtins", "numpy", "cupy", "cupyx", "cupy_backends", "scipy", "functools"))


def forbidden(value: Any) -> str:
    """Return what is wrong with a client's having ``value``; "" if nothing is."""
    if isinstance(value, _CODE):
        return f"a {type(value).__name__}"
    if isinstance(value, _SYSTEM) or type(value) is _POINTERS:
        return f"a {type(value).__module__}.{type(value).__qualname__}"
    if isinstance(value, type):
        return "" if _is_served(value) else f"the class {value.__module__}.{value.__qualname__}"
    if isinstance(value, dict) and _is_namespace(value):
        return "the names of a module or class"
    if isinstance(value, (types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.MethodWrapperType)):
        return _of_function(value)
    if isinstance(value, np.ndarray) and value.dtype.hasobject:
        return "an array of Python's objects"
    module = type(value).__module__ or ""
    if module.startswith("gpu_backend") and not module.startswith(_ALLOWED):
        return f"our own {type(value).__qualname__}"
    return ""


_ALLOWED = ("gpu_backend.devices", "gpu_backend.executor.tasks")


def foreign(value: Any) -> str:
    """Return the module of the class of ``value`` if it is none that a session is made of."""
    module = (type(value).__module__ or "").partition(".")[0]
    return "" if module in _OURS or module == "gpu_backend" else module


def _is_served(kind: type) -> bool:
    """Tell whether ``kind`` is the class that a public name stands for, on either device."""
    if issubclass(kind, np.generic) or kind in (bool, int, float, complex):
        return True
    root = kind.__module__.partition(".")[0]
    return (
        root in ("cupy", "cupyx", "gpu_backend", "numpy", "scipy", "cupy_backends") and kind.__name__ in _class_names()
    )


def _class_names() -> frozenset[str]:
    global _names
    if not _names:
        described = load().items()
        _names = frozenset(name.rpartition(".")[2] for name, entry in described if type(entry).__name__ == "Class")
    return _names


_names: frozenset[str] = frozenset()


def _is_namespace(value: dict[Any, Any]) -> bool:
    if "__builtins__" in value or "__spec__" in value or "__import__" in value or "__module__" in value:
        return True
    return value is sys.modules


def _of_function(value: Any) -> str:
    owner = getattr(value, "__self__", None)
    if owner is not None and not isinstance(owner, types.ModuleType):
        inner = forbidden(owner)
        return f"a method of {inner}" if inner else ""
    module = getattr(value, "__module__", None) or ""
    if module.partition(".")[0] in _DOORS and value.__name__ not in _HARMLESS:
        return f"the function {module}.{value.__name__}"
    return ""
