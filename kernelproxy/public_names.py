"""The public names of CuPy, for the rooms below the namespace: what each stands for, the namespace tells.

A call may raise an exception of CuPy's, give an object of one of its classes, or be a function that pickles by its
name; all of these are made by the room on top. So it says here, once, when it is imported, whom to ask.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Namespace(NamedTuple):
    """Who knows what names stand for."""

    #: Returns what a name is here; raises AttributeError if it is nothing.
    make: Callable[[str], Any]
    #: Returns the class of what an executor calls so; raises ProtocolError if that names none.
    class_of: Callable[[str], type[Any]]
    #: Returns what stands for a name if it is written by hand, else None.
    written: Callable[[str], Any]


#: One as long as there are names of CuPy here, none before.
_told_by: list[Namespace] = []


def are_told_by(namespace: Namespace) -> None:
    """Have ``namespace`` asked from now on."""
    _told_by[:] = [namespace]


def is_told() -> bool:
    """Tell whether anybody can be asked: not in a process that has no use for CuPy, such as the command line's."""
    return bool(_told_by)


def maker() -> Callable[[str], Any]:
    """Return the function that `make` asks: by it, what stands for a name is pickled."""
    return _namespace().make


def make(qualname: str) -> Any:
    """Return what ``qualname`` is here; raises AttributeError if it is nothing."""
    return _namespace().make(qualname)


def class_of(type_name: str) -> type[Any]:
    """Return the class of what an executor calls ``type_name``; raises ProtocolError if it names none."""
    return _namespace().class_of(type_name)


def written(qualname: str) -> Any:
    """Return what stands for ``qualname`` if it is written by hand, else None."""
    return _namespace().written(qualname)


def _namespace() -> Namespace:
    if not _told_by:
        raise RuntimeError("Names of CuPy mean nothing here yet: import kernelproxy.namespace.names first.")
    return _told_by[0]
