"""Classes of the device under the names that CuPy's have: what a remote object's type is called across the wire."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from gpu_backend.executor.devices.cpu.table import define_value

C = TypeVar("C", bound=type)


def public_class(*names: str, module: str) -> Callable[[C], C]:
    """Register the decorated class under public names, and let it say it is from CuPy's ``module``."""

    def register(kind: C) -> C:
        kind.__module__ = module
        define_value(kind, *names)
        return kind

    return register
