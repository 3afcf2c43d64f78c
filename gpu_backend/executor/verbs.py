"""The protocol's own ops. Their names begin with a dot, which no public name of CuPy does."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from gpu_backend.executor.devices.base import Device
from gpu_backend.executor.public_attributes import public_attribute
from gpu_backend.executor.tasks import Task


class Verbs:
    """The verbs, bound to a device. ``table`` maps each name to a function of the op's arguments."""

    def __init__(self, device: Device, resolve: Callable[[str], Any]) -> None:
        self._device = device
        self._resolve = resolve
        self.table: dict[str, Callable[..., Any]] = {
            ".nothing": _nothing,
            ".same": _same,
            ".fail": _fail,
            ".call": _call,
            ".method": self._method,
            ".getattr": self._getattr,
            ".setattr": self._setattr,
            ".write": self._write,
            ".wait_event": self._wait_event,
            ".synchronize": device.synchronize,
            ".memory": lambda: tuple(device.memory()),
            ".doc": self._doc,
            ".begin": self._begin,
            ".resume": _resume,
        }

    def _method(self, target: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        return public_attribute(target, name)(*args, **kwargs)

    def _getattr(self, target: Any, name: str) -> Any:
        if self._device.is_array(target):
            return self._device.attribute(target, name)
        value = public_attribute(target, name)
        if callable(value) and inspect.isroutine(value):
            raise AttributeError(f"{name!r} is a method; it is called, not read, across the wire.")
        return value

    def _setattr(self, target: Any, name: str, value: Any) -> None:
        public_attribute(target, name)
        setattr(target, name, value)

    def _begin(self, name: str, *args: Any, **kwargs: Any) -> Any:
        function = self.table.get(name) or self._resolve(name)
        return Task(self._device.enter_thread, function, args, kwargs).advance()

    def _write(self, array: Any, offset: int, data: np.ndarray[Any, Any]) -> None:
        self._device.write(array, offset, np.ascontiguousarray(data).reshape(-1).view(np.uint8).data)

    def _wait_event(self, event: Any) -> None:
        self._resolve("cupy.cuda.get_current_stream")().wait_event(event)

    def _doc(self, qualname: str) -> str:
        return inspect.getdoc(self._resolve(qualname)) or ""


def _nothing() -> None:
    """Do nothing: carries handles to drop."""


def _same(value: Any) -> Any:
    """Return ``value``: reads its contents, or gives a view a handle of its own."""
    return value


def _fail(message: str) -> None:
    """Raise: stands for an op that the notebook could not send."""
    raise TypeError(message)


def _resume(task: Task, returned: bool, value: Any) -> Any:
    """Go on with a call: ``value`` is what the notebook's function returned, or, in words, what it raised."""
    return task.resume(returned, value)


def _call(target: Any, *args: Any, **kwargs: Any) -> Any:
    return target(*args, **kwargs)
