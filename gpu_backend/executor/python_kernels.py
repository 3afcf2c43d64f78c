"""The verb ``.python_kernel``: a kernel of a notebook's Python function, which comes as text."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_backend.devices.base import Device
from gpu_backend.devices.python_source import BUILTINS, MODULES, Named, NamedModule, PythonSource
from gpu_backend.executor.described_objects import DescribedObjects

_NUMBERS = (bool, int, float, complex, str, np.generic, np.dtype, type(None))


def make_kernel(
    device: Device,
    objects: DescribedObjects,
    kind: str,
    name: str,
    text: str,
    names: dict[str, tuple[str, Any]],
    options: dict[str, Any],
) -> Any:
    """Return the object of class ``kind`` ("cupyx.jit.rawkernel", "cupy.vectorize") for a function.

    Parameters
    ----------
    name, text
        Of the function; see `PythonSource`.
    names
        What its free names stand for, as pairs: ("module", path), ("public", qualified name), ("builtin", name),
        ("value", number or tuple of them), ("kernel", an object that this verb made).
    options
        Keywords of the class.

    Raises
    ------
    ValueError, AttributeError, NotImplementedError
        If the function asks for what no kernel may.
    """
    source = PythonSource(name, text, {key: _known(objects, key, *pair) for key, pair in names.items()})
    source.definition()  # refused at once, not when it is first called
    return device.python_kernel(kind, source, options)


def _known(objects: DescribedObjects, key: str, sort: str, value: Any) -> Any:
    if sort == "module" and value in MODULES:
        return NamedModule(value)
    if sort == "public":
        module, _, name = value.rpartition(".")
        if module in MODULES and not name.startswith("_"):
            return Named(module, name)
    if sort == "builtin" and value in BUILTINS:
        return BUILTINS[value]
    if sort == "value" and _is_plain(value):
        return value
    if sort == "kernel" and objects.is_python_kernel(value):
        return value
    raise TypeError(f"A kernel cannot use {key!r}, which is {value!r}.")


def _is_plain(value: Any) -> bool:
    return all(map(_is_plain, value)) if isinstance(value, tuple) else isinstance(value, _NUMBERS)
