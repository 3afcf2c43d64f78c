"""What may be reached of an object that stays in an executor: the members of its class, as the surface describes them.

A class is described by its entry on the surface and the entries below it, or, if its name is private and public
functions give instances of it all the same, in ``objects.toml``. All else is out of reach.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import msgspec

from gpu_backend.opstream.surface import Class, Method, is_public_attribute, load
from gpu_backend.opstream.surface.not_served import refusal

__all__ = ["ClassDescription", "classes_called", "describe_class"]

#: What every Python object can say of itself.
_OF_ALL = frozenset({"__repr__", "__str__"})


@dataclass(frozen=True)
class ClassDescription:
    """What may be reached of the instances of a class.

    Attributes
    ----------
    name
        By which a notebook knows the class: the public one, or for a few the private one.
    methods, attributes, settable
        What may be called, read and set.
    refused
        Other public members, and for each a sentence that says why an executor does not have it.
    """

    name: str
    methods: frozenset[str]
    attributes: frozenset[str]
    settable: frozenset[str] = frozenset()
    refused: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_callable(self) -> bool:
        """Whether instances may be called."""
        return "__call__" in self.methods

    def with_members_of(self, ancestors: Sequence[ClassDescription]) -> ClassDescription:
        """Return this description for a class that has those ancestors as well."""
        every = (self, *ancestors)
        return ClassDescription(
            self.name,
            frozenset().union(*(one.methods for one in every)),
            frozenset().union(*(one.attributes for one in every)),
            frozenset().union(*(one.settable for one in every)),
            ChainMap(*(dict(one.refused) for one in every)),
        )


class _Private(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    reason: str
    methods: str = ""
    attributes: str = ""
    settable: str = ""


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    settable: dict[str, str]
    held: dict[str, str]
    private: dict[str, _Private]


@cache
def _file() -> _File:
    return msgspec.toml.decode(Path(__file__).with_name("objects.toml").read_bytes(), type=_File)


@cache
def describe_class(name: str) -> ClassDescription | None:
    """Return the description of the class ``name``, public or private; None if nothing is described under that name."""
    private = _file().private.get(name)
    if private is not None:
        methods = _OF_ALL.union(private.methods.split())
        return ClassDescription(name, methods, _set(private.attributes), _set(private.settable))
    surface = load()
    entry = surface.get(name)
    if not isinstance(entry, Class) or entry.exception:
        return None
    members = {member: surface[f"{name}.{member}"] for member in surface.below(name) if is_public_attribute(member)}
    refused = {member: why for member in members if (why := refusal(f"{name}.{member}")) is not None}
    methods = frozenset(member for member, entry in members.items() if isinstance(entry, Method)) - refused.keys()
    attributes = frozenset(members) - methods - refused.keys()
    return ClassDescription(
        name,
        (_OF_ALL | methods) - refused.keys(),
        (_set(_file().held.get(name, "")) | attributes) - refused.keys(),
        _set(_file().settable.get(name, "")),
        refused,
    )


@cache
def _by_last_name() -> Mapping[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for name in (*(name for name, entry in load().items() if isinstance(entry, Class)), *_file().private):
        last = name.rpartition(".")[2]
        found[last] = (*found.get(last, ()), name)
    return found


def classes_called(last_name: str) -> tuple[str, ...]:
    """Return the names of all described classes whose last part is ``last_name``."""
    return _by_last_name().get(last_name, ())


def _set(names: str) -> frozenset[str]:
    return frozenset(names.split())
