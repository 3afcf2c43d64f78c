"""Which public names no executor serves, and what to use instead: read from ``not_served.toml``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import msgspec

from gpu_backend.opstream import surface
from gpu_backend.opstream.surface.entries import Class, Function, GeneralizedUfunc, Instance, Method, NumpyName, Ufunc

_CALLED = (Class, Function, GeneralizedUfunc, Instance, Method, NumpyName, Ufunc)


class NotServed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Names of one kind.

    Attributes
    ----------
    title
        What they have in common.
    reason
        Why none is served, as the end of a sentence that begins with the name.
    instead
        What to do, in whole sentences.
    names, but
        Qualified names, or how such names begin and then ``*``; and what of them is served all the same.
    """

    title: str
    reason: str
    instead: str
    names: tuple[str, ...]
    but: tuple[str, ...] = ()


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    group: tuple[NotServed, ...]


@cache
def groups() -> tuple[NotServed, ...]:
    """Return the kinds of names, as they stand in the file."""
    return msgspec.toml.decode(Path(__file__).with_name("not_served.toml").read_bytes(), type=_File).group


def refusal(qualname: str) -> str | None:
    """Return why no executor serves ``qualname``, and what to use instead; None if one may.

    Examples
    --------
    >>> refusal("cupy.add") is None
    True
    >>> refusal("cupy.cuda.driver.linkAddFile")  # doctest: +ELLIPSIS
    'cupy.cuda.driver.linkAddFile is not served: it takes the path of a file ...'
    """
    described = surface.load()
    group = _by_name().get(described.canonical(qualname))
    if group is not None:
        return f"{qualname} is not served: {group.reason}. {group.instead}"
    if described.is_public(qualname) and not described.is_remote(qualname):
        return f"{qualname} works on the files or addresses of one process; it runs in the notebook."
    return None


@cache
def _by_name() -> Mapping[str, NotServed]:
    canonical = surface.load().canonical
    found: dict[str, NotServed] = {}
    for group in groups():
        served = set(map(canonical, group.but))
        found |= {name: group for name in names_of(group) if name not in served and name not in found}
    return found


def names_of(group: NotServed) -> list[str]:
    """Return the canonical names that those of ``group`` stand for; under a pattern all that can be called."""
    described = surface.load()
    patterns = tuple(name.removesuffix("*") for name in group.names if name.endswith("*"))
    exact = [described.canonical(name) for name in group.names if name in described]
    below = [name for name in described if name.startswith(patterns) and _is_called(described.resolved(name))]
    return [*exact, *map(described.canonical, below)]


def _is_called(entry: surface.Entry) -> bool:
    return isinstance(entry, _CALLED) and not (isinstance(entry, Class) and entry.exception)
