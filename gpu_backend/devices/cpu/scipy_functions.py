"""SciPy's functions under CuPy's names and with CuPy's parameters.

Which names there are, and with which parameters, is read from the surface description; SciPy does the work.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

from gpu_backend.devices.cpu.table import define, define_value
from gpu_backend.devices.cpu.ufunc import Ufunc
from gpu_backend.opstream.surface import Function, load, signature_of
from gpu_backend.opstream.surface import Ufunc as UfuncEntry

#: Parameters that say how a GPU should go about it; the answer does not depend on them.
_HOW_ONLY = frozenset(
    {
        "plan", "texture_memory", "float64_coords", "block_params", "float64_distances", "adaptive_index_dtype",
        "blocking", "brute_force_parallel_bins",
    }
)  # fmt: skip

#: CuPy's parameter names that SciPy spells otherwise.
_RENAMED = {"tol": "rtol"}


def define_scipy(prefix: str, source: ModuleType, without: Iterable[str] = ()) -> None:
    """Register the functions and ufuncs that CuPy has under ``prefix`` and SciPy in ``source``."""
    surface = load()
    skipped = set(without)
    for qualname in surface:
        owner, _, name = qualname.rpartition(".")
        if owner != prefix or name in skipped or not hasattr(source, name):
            continue
        entry = surface.resolved(qualname)
        if isinstance(entry, UfuncEntry):
            define_value(special_ufunc(entry, getattr(source, name)), qualname)
        elif isinstance(entry, Function) and not entry.local:
            define(qualname)(with_parameters_of(entry, getattr(source, name)))


def special_ufunc(entry: UfuncEntry, compute: Callable[..., object]) -> Ufunc:
    """Return a ufunc with CuPy's signatures that ``compute`` computes."""
    return Ufunc(entry.name.removeprefix("cupy_"), lambda *args: compute(*args), types=entry.types)


def with_parameters_of(entry: Function, function: Callable[..., object]) -> Callable[..., Any]:
    """Return ``function`` with the parameters that ``entry`` describes."""
    wanted = signature_of(entry)
    try:
        given = inspect.signature(function)
    except (TypeError, ValueError):
        return function
    if wanted is None or _takes_anything(given):
        return function
    if _alike(wanted, given) and not _HOW_ONLY & wanted.parameters.keys():
        return function
    names = _name_map(wanted, given)

    @functools.wraps(function)
    def call(*args: object, **kwargs: object) -> Any:
        bound = wanted.bind(*args, **kwargs)
        options = {}
        positional: list[Any] = []
        for name, value in bound.arguments.items():
            parameter = wanted.parameters[name]
            if parameter.kind is parameter.VAR_POSITIONAL:
                positional.extend(value)
            elif parameter.kind is parameter.VAR_KEYWORD:
                options.update(value)
            elif names.get(name) is not None:
                options[names[name]] = value
            elif name not in _HOW_ONLY and value is not parameter.default and value != parameter.default:
                raise NotImplementedError(f"{name}={value!r} needs a CUDA device")
        return function(*positional, **options)

    return call


def _alike(wanted: inspect.Signature, given: inspect.Signature) -> bool:
    """Tell whether what binds to ``wanted`` means the same when it is given to ``given``."""
    mine, theirs = list(wanted.parameters.values()), list(given.parameters.values())
    if len(mine) > len(theirs):
        return False
    return all(
        a.name == b.name and a.kind == b.kind and _same_default(a, b) for a, b in zip(mine, theirs, strict=False)
    )


def _takes_anything(given: inspect.Signature) -> bool:
    return any(p.kind is p.VAR_POSITIONAL for p in given.parameters.values())


def _same_default(a: inspect.Parameter, b: inspect.Parameter) -> bool:
    return a.default is b.default or repr(a.default) == repr(b.default)


def _name_map(wanted: inspect.Signature, given: inspect.Signature) -> dict[str, str | None]:
    """Return, for each of CuPy's parameters, what SciPy calls it; by name, else by place if that is free."""
    theirs = list(given.parameters)
    takes_any = any(p.kind is p.VAR_KEYWORD for p in given.parameters.values())
    mapped: dict[str, str | None] = {}
    for place, name in enumerate(wanted.parameters):
        if name in _HOW_ONLY:
            mapped[name] = None
        elif name in theirs:
            mapped[name] = name
        elif _RENAMED.get(name) in theirs:
            mapped[name] = _RENAMED[name]
        elif place < len(theirs) and theirs[place] not in wanted.parameters and name not in _HOW_ONLY:
            mapped[name] = theirs[place]
        else:
            mapped[name] = name if takes_any and name not in _HOW_ONLY else None
    return mapped
