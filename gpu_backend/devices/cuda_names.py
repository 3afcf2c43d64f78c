"""What the public names of CuPy stand for, and the names of its classes."""

from __future__ import annotations

import importlib
from typing import Any

import cupy

from gpu_backend.opstream.surface.objects import classes_called


def find(qualname: str) -> Any:
    """Return what is called ``qualname``; modules on the way are imported.

    Raises
    ------
    AttributeError
        If CuPy has nothing of that name.
    """
    root, *rest = qualname.split(".")
    found: Any = importlib.import_module(root)
    path = root
    for part in rest:
        path = f"{path}.{part}"
        try:
            found = getattr(found, part)
        except AttributeError:
            found = _submodule(path, qualname)
    return found


def name_of_class(kind: type) -> str | None:
    """Return the name by which the surface describes ``kind`` itself; None if that is another class, or none."""
    return next((name for name in classes_called(kind.__name__) if _is_class_at(name, kind)), None)


def _is_class_at(name: str, kind: type) -> bool:
    try:
        return find(name) is kind
    except (AttributeError, ImportError):  # of a part of CuPy that is not installed
        return False


def _submodule(path: str, qualname: str) -> Any:
    try:
        return importlib.import_module(path)
    except ModuleNotFoundError as error:
        if error.name and path.startswith(error.name):
            raise AttributeError(f"CuPy {cupy.__version__} has no {qualname!r}") from None
        raise
