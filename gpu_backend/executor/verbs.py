"""The protocol's own ops. Their names begin with a dot, which no public name of CuPy does."""

from __future__ import annotations

import functools
import hashlib
import inspect
import io
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from gpu_backend.devices.base import Device
from gpu_backend.devices.own_file import OwnFile
from gpu_backend.executor.channels import Channels
from gpu_backend.executor.copying import Copying
from gpu_backend.executor.described_objects import DescribedObjects
from gpu_backend.executor.python_kernels import make_kernel
from gpu_backend.executor.tasks import Task
from gpu_backend.opstream.contents import KEEP, WRITE_KEPT, KeptContents
from gpu_backend.opstream.surface import Method, Property, load

#: The verb by which a notebook puts an array into a window of the same shape and dtype.
STORE = ".store"
#: The one by which it puts a value into those elements of a window that a mask chooses.
STORE_WHERE = ".store_where"
#: The one that returns its argument: so an array is read, copied into another handle, or kept.
SAME = ".same"
#: The one by which it puts bytes of the host into an array.
WRITE = ".write"
#: The one by which it asks how an array lies whose shape it could not know.
LAYOUT = ".layout"
#: The one by which it sets an attribute of an object.
SET_ATTRIBUTE = ".setattr"
#: The one by which it waits for the device.
SYNCHRONIZE = ".synchronize"
#: The one by which it has a stream wait for an event.
WAIT_EVENT = ".wait_event"
#: The one by which it asks how its ops were carried out.
WAYS = ".ways"


class Verbs:
    """The verbs, bound to a device. ``table`` maps each name to a function of the op's arguments.

    Parameters
    ----------
    ways
        Tells how ops were carried out so far.
    contents
        What is kept of what was uploaded; nothing if left out.
    channels
        To the executors of the notebook's other devices; None for none.
    """

    def __init__(
        self, device: Device, resolve: Callable[[str], Any], objects: DescribedObjects,
        ways: Callable[[], Any] = tuple, contents: KeptContents | None = None, channels: Channels | None = None,
    ) -> None:  # fmt: skip
        self._device = device
        self._resolve = resolve
        self._objects = objects
        self._contents = contents or KeptContents(0)
        #: Those by which contents pass to other executors.
        self.copying = Copying(device, objects, channels or Channels())
        self.table: dict[str, Callable[..., Any]] = {
            ".nothing": _nothing,
            SAME: _same,
            ".window": self._window,
            LAYOUT: self._layout,
            STORE: self._store,
            STORE_WHERE: self._store_where,
            ".fail": _fail,
            ".call": self._call,
            ".method": self._method,
            ".getattr": self._getattr,
            SET_ATTRIBUTE: self._setattr,
            WRITE: self._write,
            KEEP: self._keep,
            WRITE_KEPT: self._write_kept,
            WAIT_EVENT: self._wait_event,
            SYNCHRONIZE: device.synchronize,
            ".memory": lambda: tuple(device.memory()),
            WAYS: ways,
            ".doc": self._doc,
            ".begin": self._begin,
            ".launch": self._launch,
            ".module_of_file": self._module_of_file,
            ".cached_codes": self._cached_codes,
            ".compile": self._compile,
            ".python_kernel": functools.partial(make_kernel, device, objects),
            ".resume": _resume,
            **self.copying.table,
        }

    def _call(self, target: Any, *args: Any, **kwargs: Any) -> Any:
        return self._objects.function(target)(*args, **kwargs)

    def _method(self, target: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        if self._objects.is_array(target):  # by name, as the notebook calls them: then each device has its own
            return self._resolve(f"cupy.ndarray.{name}")(target, *args, **kwargs)
        # CuPy may copy an array of the host when this has returned, and the memory of a message is others' by then.
        kept = {key: self._own(value) for key, value in kwargs.items()}
        return self._objects.method(target, name)(*map(self._own, args), **kept)

    def _own(self, value: Any) -> Any:
        """Return a host array as one of its own; what is the device's, which may be of the same class, as it is."""
        return value.copy() if type(value) is np.ndarray and not self._objects.is_array(value) else value

    def _getattr(self, target: Any, name: str, *parts: Any) -> Any:
        # What is one of the parts that the notebook has already is told by that one's handle, as every argument is.
        return self._objects.attribute(target, name)

    def _setattr(self, target: Any, name: str, value: Any) -> None:
        self._objects.set_attribute(target, name, value)

    def _window(self, array: Any) -> Any:
        """Return another array of the same memory: views are one array wherever they are the same view."""
        return self._objects.array(array).view()

    def _layout(self, array: Any) -> tuple[tuple[int, ...], tuple[int, ...], np.dtype[Any]]:
        """Return how an array lies whose shape the notebook could not know."""
        return tuple(self._device.layout(self._objects.array(array)))  # type: ignore[return-value]

    def _cached_codes(self, kernel: Any) -> dict[str, str]:
        """Return the texts that a kernel written in Python was compiled to, by argument types in words."""
        codes = self._objects.attribute(kernel, "cached_codes")
        return {str(types): getattr(made, "code", made) for types, made in codes.items()}

    def _compile(self, kernel: Any, is_log_wanted: bool) -> str:
        """Compile a kernel or module of CUDA C++ now; return what the compiler printed, if that is wanted."""
        log = io.StringIO() if is_log_wanted else None
        self._objects.method(kernel, "compile")(log_stream=log)
        return log.getvalue() if log is not None else ""

    def _begin(self, name: str, *args: Any, **kwargs: Any) -> Any:
        function = self.table.get(name) or self._resolve(name)
        return Task(self._device.enter_thread, function, args, kwargs).advance()

    def _launch(
        self, kernel: Any, grid: Any, block: Any, args: tuple[Any, ...], by_value: tuple[int, ...], **options: Any
    ) -> None:
        """Launch with arrays of the notebook's host at the places ``by_value``."""
        packed = [self._device.by_value(one) if place in by_value else one for place, one in enumerate(args)]
        self._objects.function(kernel)(grid, block, tuple(packed), **options)

    def _module_of_file(self, content: bytes, **options: Any) -> Any:
        """Return the ``cupy.RawModule`` of a compiled file of the notebook's disk.

        It is loaded on every device before the copy goes: CuPy does so where it is first used.
        """
        name = hashlib.sha256(content).hexdigest()  # CuPy remembers what it has loaded by path
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, name)
            Path(path).write_bytes(content)
            module = self._resolve("cupy.RawModule")(path=OwnFile(path), **options)
            for number in range(self._device.count):
                with self._resolve("cupy.cuda.Device")(number):
                    module.compile()
        return module

    def _write(self, array: Any, offset: int, data: np.ndarray[Any, Any]) -> None:
        self._device.write(self._objects.array(array), offset, _bytes_of(data))

    def _keep(self, digest: bytes, data: np.ndarray[Any, Any], gone: tuple[bytes, ...] | None) -> None:
        self._contents.keep(digest, bytes(_bytes_of(data)), gone)  # a copy: the memory of a message is others' by then

    def _write_kept(self, array: Any, offset: int, digest: bytes) -> None:
        self._device.write(self._objects.array(array), offset, memoryview(self._contents.get(digest)))

    def _store(self, window: Any, value: Any) -> None:
        self._resolve("cupy.ndarray.__setitem__")(window, Ellipsis, value)

    def _store_where(self, window: Any, mask: Any, value: Any) -> None:
        self._resolve("cupy.copyto")(self._objects.array(window), value, "unsafe", mask)

    def _wait_event(self, event: Any) -> None:
        self._resolve("cupy.cuda.get_current_stream")().wait_event(self._objects.event(event))

    def _doc(self, qualname: str) -> str:
        if isinstance(load().get(qualname), (Method, Property)):  # of the class: there is no object to ask
            owner, _, name = qualname.rpartition(".")
            return inspect.getdoc(getattr(self._resolve(owner), name, None)) or ""
        found = self._resolve(qualname)
        if not inspect.isclass(found) and found.__doc__ == type(found).__doc__:
            return ""  # what its class says of itself is said to whoever reads the device's source
        return inspect.getdoc(found) or ""


def _bytes_of(data: np.ndarray[Any, Any]) -> memoryview:
    return np.ascontiguousarray(data).reshape(-1).view(np.uint8).data


def _nothing() -> None:
    """Do nothing: carries handles to drop."""


def _same(value: Any) -> Any:
    """Return ``value``: reads its contents."""
    return value


def _fail(message: str) -> None:
    """Raise: stands for an op that the notebook could not send."""
    raise TypeError(message)


def _resume(task: Task, returned: bool, value: Any) -> Any:
    """Go on with a call: ``value`` is what the notebook's function returned, or, in words, what it raised."""
    return task.resume(returned, value)
