"""From a public name to the object that stands for it in the notebook."""

from __future__ import annotations

import importlib
import types
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

import kernelproxy.array.remote_array  # noqa: F401 (registers the class of new arrays)
from gpu_backend.opstream import surface
from kernelproxy import public_names
from kernelproxy.calls.remote_function import RemoteFunction
from kernelproxy.calls.remote_object import RemoteInstance, class_of, remote_class
from kernelproxy.calls.ufuncs import make_ufunc
from kernelproxy.namespace.device_functions import OF_DEVICES, DeviceFunction
from kernelproxy.namespace.lasting import LASTING, LastingFunction
from kernelproxy.namespace.own import OWN
from kernelproxy.namespace.private_names import MADE, SAME_AS
from kernelproxy.namespace.python_kernels import JitName
from kernelproxy.namespace.transforms import MODULES, Transform

#: Constants that CuPy has from NumPy, by their ``repr``: programs ask whether something ``is cupy.nan``.
_NUMPYS = {repr(value): value for value in (np.nan, np.inf, np.pi, np.e, np.euler_gamma)}


@cache
def make(qualname: str) -> Any:
    """Return what ``qualname`` is here; an alias is the object of its target.

    Raises
    ------
    AttributeError
        If the name works only where the GPU is, and this client has no other way to offer it.
    """
    described = surface.load()
    canonical = described.canonical(SAME_AS.get(qualname, qualname))
    if canonical != qualname:
        return make(canonical)
    own = written(qualname, MADE)
    if own is not None:
        return _at_home(own, qualname, described.get(qualname))
    entry = described[qualname]
    if qualname.startswith("cupyx.jit.") and not isinstance(entry, surface.Module):
        return JitName(qualname)
    if isinstance(entry, surface.NumpyName):
        return _imported(entry.target)
    if isinstance(entry, surface.Constant):
        return _NUMPYS.get(entry.literal, entry.value)
    if isinstance(entry, surface.Ufunc):
        return make_ufunc(qualname)
    if isinstance(entry, surface.Class):
        return _exception(qualname, entry) if entry.exception else remote_class(qualname)
    if isinstance(entry, (surface.Function, surface.GeneralizedUfunc)):
        if getattr(entry, "local", False):
            raise AttributeError(f"{qualname} is not available in remote CuPy: it works on one process's own memory.")
        return _kind_of_function(qualname)(qualname, entry)
    if isinstance(entry, surface.Method) and entry.binding:
        owner, _, name = qualname.rpartition(".")
        return getattr(make(owner), name)
    if isinstance(entry, surface.Instance) and entry.type_name.startswith("cupy"):
        return RemoteInstance(qualname, entry.type_name)
    raise AttributeError(f"{qualname} is not available in remote CuPy.")


def _kind_of_function(qualname: str) -> type[RemoteFunction]:
    if qualname in LASTING:
        return LastingFunction
    if qualname in OF_DEVICES:
        return DeviceFunction
    return Transform if qualname.startswith(MODULES) else RemoteFunction


def written(qualname: str, beside: Mapping[str, str] = types.MappingProxyType({})) -> Any:
    """Return what stands for ``qualname`` if it is written by hand, in the table of ours or in one ``beside``."""
    own = OWN.get(qualname) or beside.get(qualname)
    if own is None:
        return None
    module, _, attribute = own.partition(":")
    return getattr(importlib.import_module(module), attribute)


def _imported(target: str) -> Any:
    parts = target.split(".")
    for split in range(len(parts) - 1, 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:split]))
        except ImportError:
            continue
        for part in parts[split:]:
            found = getattr(found, part)
        return found
    raise AttributeError(target)


def _exception(qualname: str, entry: surface.Class) -> type[BaseException]:
    bases = []
    for base in entry.bases:
        found = make(base) if base.split(".")[0] in ("cupy", "cupyx") else _imported(base)
        bases.append(found)
    module, _, name = qualname.rpartition(".")
    return type(name, tuple(bases), {"__module__": entry.home or module})


def _at_home(found: object, qualname: str, entry: surface.Entry | None) -> Any:
    """Return the function ``found``, which is written here, by the name and of the module that CuPy's has."""
    if not isinstance(found, types.FunctionType) or not isinstance(entry, surface.Function):
        return found
    if found.__module__.startswith("kernelproxy."):
        module, _, name = qualname.rpartition(".")
        found.__module__ = entry.home or module
        found.__name__ = found.__qualname__ = entry.called or name
    return found


public_names.are_told_by(public_names.Namespace(make, class_of, written))
