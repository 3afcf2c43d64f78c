"""What an op may reach of the objects in an executor: of each, the members that the surface describes for its class.

Nothing else is stored, called, read or sent: from an object that nobody has described, Python's own attributes lead to
builtins, files and processes in a few steps. See docs/adr/0020-only-described-objects.md.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import numpy as np

from gpu_backend.devices.base import Device
from gpu_backend.executor.handles import Handles
from gpu_backend.executor.heap.entries import Kind, kind_named
from gpu_backend.executor.tasks import Task
from gpu_backend.opstream.surface.objects import ClassDescription, describe_class
from gpu_backend.wire.errors import ProtocolError

#: Values of the host that say all there is of them: ops may leave them here, and have no attributes of them.
_VALUES = (type(None), bool, int, float, complex, str, bytes, np.generic, np.dtype)
#: Subclasses of these go by value; whatever class they are of, nothing of it goes with them.
_BY_VALUE = (tuple, str, int, float)
_BOUND_METHODS = (types.MethodType, types.BuiltinMethodType)
_TASK = ClassDescription("gpu_backend.executor.tasks.Task", frozenset(), frozenset())
#: What ``factorized`` and ``get_allocator`` give: a method of an object that is described.
_BOUND_METHOD = ClassDescription("builtins.function", frozenset({"__call__"}), frozenset())
_ARRAY = "cupy.ndarray"
_SPARSE, _FACTS = "cupyx.scipy.sparse.", frozenset({"shape", "dtype", "nnz", "format"})
_EVENTS = frozenset({"cupy.cuda.Event"})
_STREAMS = frozenset({"cupy.cuda.Stream", "cupy.cuda.ExternalStream"})
#: So many methods are remembered.
_MOST_PLAIN = 1_024
_PYTHON_KERNELS = frozenset({"cupyx.jit._interface._JitRawKernel"})


class DescribedObjects:
    """Knows of each object what may be reached of it."""

    def __init__(self, device: Device) -> None:
        self._device = device
        #: What nearly every result is: the op loop asks for nothing but this, see `OpStream.run`.
        self.array_type: type = device.array_type
        #: By the class itself, never by a name that it gives itself.
        self._by_class: dict[type, ClassDescription | None] = {Task: _TASK}
        #: Methods that may be called as they are, by class and name.
        self._plain: set[tuple[type, str]] = set()
        #: The numbers that this session was given for streams, events, graphs and kernels.
        self.handles = Handles(self._name_of_class)

    def describe(self, value: object) -> ClassDescription | None:
        """Return the description of the class of ``value``, or of its nearest ancestor that has one, or None."""
        kind = type(value)
        if kind in _BOUND_METHODS:
            return _BOUND_METHOD if self._is_described_method(value) else None
        try:
            return self._by_class[kind]
        except KeyError:
            found = self._by_class[kind] = None if issubclass(kind, _BY_VALUE) else self._find(kind)
            return found

    def _find(self, kind: type) -> ClassDescription | None:
        names = (self._device.class_name(ancestor) for ancestor in kind.__mro__)
        found = [described for name in names if name is not None and (described := describe_class(name)) is not None]
        return found[0].with_members_of(found[1:]) if found else None

    def _is_described_method(self, value: Any) -> bool:
        owner = value.__self__
        if type(owner) in _BOUND_METHODS or isinstance(owner, (type, types.ModuleType)):
            return False
        described = self.describe(owner)
        return described is not None and value.__name__ in described.methods

    def kind(self, value: object) -> Kind:
        """Return what kind of entry of the heap ``value`` is."""
        if self._device.is_array(value):
            return Kind.ARRAY
        described = self.describe(value)
        return Kind.VALUE if described is None else kind_named(described.name)

    def require_storable(self, result: object) -> None:
        """Refuse a result that may not stay in the executor under a handle.

        Raises
        ------
        TypeError
            If its class is not described, and it is no plain value either.
        """
        if self.describe(result) is None and not isinstance(result, _VALUES):
            raise TypeError(undescribed(result))

    def is_array(self, value: object) -> bool:
        """Tell whether ``value`` is an array of the device."""
        return self._device.is_array(value)

    def is_python_kernel(self, value: object) -> bool:
        """Tell whether ``value`` is a kernel that was made of a Python function."""
        return self._is_one_of(_PYTHON_KERNELS, value)

    def array(self, value: Any) -> Any:
        """Return ``value`` if it is an array of the device; raise TypeError if not."""
        if not self._device.is_array(value):
            raise TypeError(f"This takes an array, and no {type(value).__name__}.")
        return value

    def event(self, value: Any) -> Any:
        """Return ``value`` if it is an event; raise TypeError if not."""
        return self._one_of(_EVENTS, value)

    def stream(self, value: Any) -> Any:
        """Return ``value`` if it is a stream; raise TypeError if not."""
        return self._one_of(_STREAMS, value)

    def function(self, value: Any) -> Callable[..., Any]:
        """Return ``value`` if it may be called: a kernel, a spline, a polynomial, a method of such an object, ...

        Raises
        ------
        ProtocolError
            If it may not. A function of CuPy is called by its name.
        """
        described = self.describe(value)
        if described is None or not described.is_callable:
            raise ProtocolError(f"A {type(value).__name__} cannot be called across the wire.")
        return self.handles.held(f"{described.name}.__call__", value)

    def method(self, target: Any, name: str) -> Callable[..., Any]:
        """Return the method ``name`` of ``target``.

        Raises
        ------
        AttributeError
            If the class of ``target`` has no such method for a notebook.
        ProtocolError
            If ``target`` is nothing that has attributes for a notebook.
        """
        if (type(target), name) in self._plain:
            return getattr(target, name)  # type: ignore[no-any-return]
        described = self._members(target, name)
        if name not in described.methods:
            raise AttributeError(f"{type(target).__name__!r} object has no public method {name!r}")
        found, qualname = getattr(target, name), f"{described.name}.{name}"
        held: Callable[..., Any] = self.handles.held(qualname, found)
        of_class = type(target) not in _BOUND_METHODS  # what may be reached of those their objects say
        if of_class and held is found and len(self._plain) < _MOST_PLAIN:
            self._plain.add((type(target), name))
        return held

    def attribute(self, target: Any, name: str) -> Any:
        """Return the attribute ``name`` of ``target``, which is no method; errors are those of `method`."""
        described = self._members(target, name)
        if name in described.methods:
            raise AttributeError(f"{name!r} is a method; it is called, not read, across the wire.")
        if name not in described.attributes:
            raise AttributeError(f"{type(target).__name__!r} object has no public attribute {name!r}")
        if described.name == _ARRAY:
            return self._device.attribute(target, name)
        return self.handles.told(f"{described.name}.{name}", target, getattr(target, name))

    def facts(self, described: ClassDescription, value: Any) -> dict[str, Any]:
        """Return what is told of an object when it is given: of a sparse matrix what programs ask for next."""
        if not described.name.startswith(_SPARSE) or not described.attributes.issuperset(_FACTS):
            return {}
        told = {"shape": tuple(map(int, value.shape)), "dtype": np.dtype(value.dtype)}
        return told if value.format == "dia" else told | {"nnz": int(value.nnz)}  # which has to count them

    def set_attribute(self, target: Any, name: str, value: Any) -> None:
        """Let ``target`` have ``value`` as its attribute ``name``; errors are those of `method`."""
        if name not in self._members(target, name).settable:
            raise AttributeError(f"{type(target).__name__!r} object has no attribute {name!r} that a notebook may set")
        setattr(target, name, value)

    def _members(self, target: Any, name: str) -> ClassDescription:
        described = self.describe(target)
        if described is None:
            raise ProtocolError(
                f"A {type(target).__name__} has no attributes here. Only objects of CuPy's have them; "
                "functions and classes go by their public names."
            )
        if name in described.refused:
            raise AttributeError(described.refused[name])
        return described

    def _name_of_class(self, value: object) -> str | None:
        described = self.describe(value)
        return None if described is None else described.name

    def _one_of(self, names: frozenset[str], value: Any) -> Any:
        if not self._is_one_of(names, value):
            raise TypeError(f"This takes a {' or '.join(sorted(names))}, and no {type(value).__name__}.")
        return value

    def _is_one_of(self, names: frozenset[str], value: object) -> bool:
        described = self.describe(value)
        return described is not None and described.name in names


def undescribed(result: object) -> str:
    """Say that ``result`` is of a class that nobody has described, and what to do."""
    kind = type(result)
    return (
        f"A {kind.__module__}.{kind.__qualname__} cannot stay in the executor or leave it: no class of that kind is "
        "described on CuPy's public surface. Ask for its parts by public functions that give arrays or numbers."
    )
