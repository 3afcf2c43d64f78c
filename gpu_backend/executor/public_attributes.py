"""What may be asked of an object that stays in the executor."""

from __future__ import annotations

import inspect
from typing import Any

from gpu_backend.surface import is_public_attribute
from gpu_backend.wire.errors import ProtocolError


def public_attribute(target: Any, name: str) -> Any:
    """Return the public attribute ``name`` of ``target``.

    Raises
    ------
    AttributeError
        If there is none, or it is not public.
    ProtocolError
        If ``target`` is a module, a class or a function: those have no attributes for a notebook.
    """
    if not is_public_attribute(name):
        raise AttributeError(f"{type(target).__name__!r} object has no public attribute {name!r}")
    if inspect.ismodule(target) or inspect.isclass(target) or inspect.isroutine(target):
        raise ProtocolError("Only objects have attributes here; functions and classes go by their public names.")
    return getattr(target, name)
