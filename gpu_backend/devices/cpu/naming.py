"""Classes of the device under the names that CuPy's have: what a remote object's type is called across the wire."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from gpu_backend.devices.cpu.table import define_value, lookup
from gpu_backend.opstream.surface.objects import classes_called

C = TypeVar("C", bound=type)

#: Classes that no public name of the device stands for, and what the surface describes them as.
_described_as: dict[type, str] = {np.ndarray: "cupy.ndarray"}


def public_class(*names: str, module: str) -> Callable[[C], C]:
    """Register the decorated class under public names, and let it say it is from CuPy's ``module``."""

    def register(kind: C) -> C:
        kind.__module__ = module
        define_value(kind, *names)
        return kind

    return register


def describe_as(name: str, *kinds: type) -> None:
    """Let objects of these classes go by ``name``: that of a public class of CuPy's, or of a private one."""
    _described_as.update(dict.fromkeys(kinds, name))


def name_of_class(kind: type) -> str | None:
    """Return what the surface describes ``kind`` as, None if it does not."""
    found = _described_as.get(kind)
    if found is not None:
        return found
    return next((name for name in classes_called(kind.__name__) if _is_class_at(name, kind)), None)


def _is_class_at(name: str, kind: type) -> bool:
    try:
        return lookup(name) is kind
    except AttributeError:  # the device has it not
        return False
