"""Which functions take and give CUDA's handles as numbers, and of which kinds: read from ``handles.toml``."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cache
from inspect import Parameter, Signature
from pathlib import Path
from typing import NamedTuple

import msgspec

from gpu_backend.opstream.surface import Class, Entry, Function, Method, load, signature_of
from gpu_backend.opstream.surface.addresses import addresses

#: Stands for the place of a method's own object.
OBJECT = -1


class Kind(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A kind of handle.

    Attributes
    ----------
    what, instead
        Words for it, and for what to give where one is taken.
    always
        Numbers that stand for one in every process.
    attributes
        Where objects of the session say theirs, as "class.attribute".
    given, ended
        Functions that return one, and that destroy one.
    """

    what: str
    instead: str
    always: tuple[int, ...] = ()
    attributes: tuple[str, ...] = ()
    given: tuple[str, ...] = ()
    ended: tuple[str, ...] = ()


class HandleTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file. ``takes`` is by module, function and parameter; the others are by qualified name or by parameter."""

    kinds: dict[str, Kind]
    takes: dict[str, dict[str, dict[str, str]]]
    held: dict[str, tuple[str, ...]]
    harmless: dict[str, tuple[str, ...]]
    objects: dict[str, tuple[str, ...]]
    places: dict[str, dict[str, int]]


class Parameters(NamedTuple):
    """What is asked of the arguments of one function: by place and by keyword, kinds of handles or names of classes.

    Attributes
    ----------
    handles, objects
        By place and by keyword. Places do not count the object of a method; its own is `OBJECT`.
    first_place
        The first of the places.
    is_of_object
        Whether it is a method.
    gives, ends
        The kind of handle that it returns, and that it destroys; "" if none.
    """

    handles: Mapping[int | str, str]
    objects: Mapping[int | str, tuple[str, ...]]
    first_place: int
    is_of_object: bool
    gives: str
    ends: str


@cache
def handle_table() -> HandleTable:
    """Return the file as it stands."""
    return msgspec.toml.decode(Path(__file__).with_name("handles.toml").read_bytes(), type=HandleTable)


@cache
def taken() -> Mapping[str, Mapping[str, str]]:
    """Return the kind of each parameter that takes a handle of the register, by qualified name and parameter."""
    by_module = handle_table().takes
    return {f"{module}.{name}": kinds for module, names in by_module.items() for name, kinds in names.items()}


@cache
def parameters_of(qualname: str) -> Parameters | None:
    """Return what is asked of the arguments of ``qualname``; None if nothing is."""
    surface = load()
    name = surface.canonical(qualname)
    places = addresses().get(name, {})
    handles = {key: kind for one, kind in taken().get(name, {}).items() for key in _keys(one, places[one])}
    objects = _objects_of(name, surface.get(name))
    kinds = handle_table().kinds.items()
    gives = next((kind for kind, told in kinds if name in told.given), "")
    ends = next((kind for kind, told in kinds if name in told.ended), "")
    entry = surface.get(name)
    is_of_object = isinstance(entry, Method) and not entry.binding
    first_place = min((key for key in (*handles, *objects) if isinstance(key, int)), default=sys.maxsize)
    asked = Parameters(handles, objects, first_place, is_of_object, gives, ends)
    return asked if handles or objects or gives else None


def _objects_of(name: str, entry: Entry | None) -> dict[int | str, tuple[str, ...]]:
    classes = handle_table().objects
    signature = signature_of(entry) if isinstance(entry, (Class, Function, Method)) else None
    is_kernel = name.endswith(".__call__") and signature is not None and _has_keywords(signature)
    found: dict[int | str, tuple[str, ...]] = {}
    found.update(classes if is_kernel else ())
    for place, one in enumerate(signature.parameters.values() if signature else ()):
        if one.name in classes and one.name not in addresses().get(name, {}):
            by_keyword = one.kind is one.KEYWORD_ONLY
            found |= dict.fromkeys(_keys(one.name, None if by_keyword else place), classes[one.name])
    for parameter, place in handle_table().places.get(name, {}).items():
        found |= dict.fromkeys(_keys(parameter, place), classes[parameter])
    owner = name.rpartition(".")[0]
    if isinstance(entry, Method) and not entry.binding and owner in _owners():
        found["self"] = found[OBJECT] = (owner,)
    return found


@cache
def _owners() -> frozenset[str]:
    """Return the classes whose objects have a handle."""
    told = (name for kind in handle_table().kinds.values() for name in kind.attributes)
    return frozenset(name.rpartition(".")[0] for name in told)


def _has_keywords(signature: Signature) -> bool:
    return any(one.kind is Parameter.VAR_KEYWORD for one in signature.parameters.values())


def _keys(parameter: str, place: int | None) -> tuple[int | str, ...]:
    return (parameter,) if place is None else (parameter, place)
