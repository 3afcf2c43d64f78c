"""The ufuncs of the surface, each made once."""

from __future__ import annotations

from functools import cache

from gpu_backend.opstream import surface
from kernelproxy.calls.ufunc import ufunc


def ufunc_named(name: str) -> ufunc:
    """Return ``cupy.<name>``."""
    return make_ufunc(f"cupy.{name}")


@cache
def make_ufunc(qualname: str) -> ufunc:
    """Return the ufunc ``qualname``; an alias and its target are one object.

    Raises
    ------
    KeyError
        If there is no such ufunc.
    """
    described = surface.load()
    canonical = described.canonical(qualname)
    if canonical != qualname:
        return make_ufunc(canonical)
    description = described[qualname]
    if not isinstance(description, surface.Ufunc):
        raise KeyError(qualname)
    return ufunc(qualname, description)
