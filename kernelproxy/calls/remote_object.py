"""Objects that stay remote and are no arrays: generators, kernels, sparse matrices, plans, splines.

A class on the surface becomes a class here whose instances hold a handle. Its methods and properties stand in the
class (`remote_members`) and are asked of the executor. Users may make subclasses (`subclassing`).
"""

from __future__ import annotations

import re
import types
import weakref
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any

from gpu_backend.opstream import surface
from gpu_backend.transport.endings import at_end
from gpu_backend.wire import values as wire
from gpu_backend.wire.errors import ProtocolError
from kernelproxy import public_names
from kernelproxy.calls import dispatch
from kernelproxy.calls.array_core import ArrayCore, handle_of
from kernelproxy.calls.documentation import ClassDoc
from kernelproxy.calls.remote_members import (
    HeldConstant,
    RemoteMethod,
    RemoteProperty,
    held_by_instances,
    home_of,
    is_method,
    members_of,
)
from kernelproxy.calls.stand_ins import StandIn
from kernelproxy.calls.subclassing import cupys_class, in_class, is_cupys, uncalled
from kernelproxy.client import Client

#: What classes are called; some are made inside a function.
_LONGEST_NAME, _NAME = 200, re.compile(r"(\w+|<locals>)(\.(\w+|<locals>))*")


class _Parts:
    """Arrays of a client in use that were read of remote objects, by handle."""

    def __init__(self, client: Client) -> None:
        self.arrays: dict[int, weakref.ref[ArrayCore]] = {}


def _note_part(array: ArrayCore) -> None:
    parts, handle = array._client.part(_Parts).arrays, handle_of(array._ref)
    parts[handle] = at_end(array, parts.pop, handle, None)


def are_parts(*arrays: ArrayCore) -> bool:
    """Tell whether any of the arrays was read of a remote object: its memory may then be another array's as well."""
    return any(handle_of(one._ref) in one._client.part(_Parts).arrays for one in arrays)


#: What stand-ins keep for themselves; all else in them is the user's.
_INNER = frozenset(
    (
        *("_client", "_handle", "_dropped", "_functions", "_parts", "_is_made", "_known"),
        *("_definition", "_compiled", "_copies", "_launched", "_module", "_functions_found", "_called"),  # of kernels
        *("_before", "_kind", "_made_with"),  # of streams
        *("_nnz", "_seeds", "_bits", "_is_default"),  # of sparse matrices, of what draws random numbers, of pools
    )
)


class RemoteObject(StandIn):
    """Base of all stand-ins. ``_qualname`` is the public name of the class it stands for.

    A class with a ``_qualname`` of its own stands for one of CuPy and gets the members of that one which are not
    written here. Classes below, without, are a user's.
    """

    _qualname = ""
    #: What of the class stands here as the surface describes it.
    _generated: frozenset[str] = frozenset()
    #: Methods that would call, in CuPy, what a user's class overrides; and what that is.
    _uncalled: Mapping[str, str] = types.MappingProxyType({})
    #: Arrays that were read of the object and are still in use: read again, each is the same array.
    _parts: tuple[weakref.ref[ArrayCore], ...] = ()

    def __init_subclass__(cls, **kwargs: object) -> None:
        """Complete a class that stands for one of CuPy; of a user's, note what CuPy's own methods will not call."""
        super().__init_subclass__(**kwargs)
        if is_cupys(cls):
            _complete(cls)
        else:
            cls._uncalled = uncalled(cls)

    def __new__(cls, *args: object, **kwargs: object) -> Any:
        """Have the executor make the object, which may be of another class than asked for; a subclass is made empty."""
        if not is_cupys(cls):
            return object.__new__(cls)
        made = cls._make(*args, **kwargs)
        object.__setattr__(made, "_is_made", True)
        return made

    def __init__(self, *args: object, **kwargs: object) -> None:
        """Have the executor make what a subclass stands for."""
        self._construct(*args, **kwargs)

    @classmethod
    def _make(cls, *args: Any, **kwargs: Any) -> Any:
        """Return what the executor makes of the arguments of CuPy's constructor."""
        return dispatch.call(cls._qualname, args, kwargs)

    def _construct(self, *args: object, **kwargs: object) -> None:
        if self.__dict__.pop("_is_made", False):
            return  # by `__new__`, with the same arguments
        self._take_over(cupys_class(type(self))._make(*args, **kwargs))  # type: ignore[attr-defined]

    def _take_over(self, made: RemoteObject) -> None:
        """Become what ``made`` stands for."""
        RemoteObject.__del__(self)
        taken = dict(made.__dict__)
        made.__dict__.clear()
        self.__dict__.update(taken)

    def __getattr__(self, name: str) -> Any:
        if name == "_handle":
            raise AttributeError(
                f"this {type(self).__name__!r} object stands for nothing yet: the __init__ of a subclass has to call "
                f"that of {self._qualname}, by super().__init__(...)"
            )
        if name.startswith("_") or not surface.is_public_attribute(name):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        if any(name in vars(kind) for kind in type(self).__mro__):
            return object.__getattribute__(self, name)  # raises again what a property has raised
        return self._read(name)

    def _here(self) -> Any:
        """Return what carries out its methods where the notebook is now: itself, unless each device has its own."""
        return self

    def _key(self, key: Any) -> Any:
        """Return what the executor takes for the index ``key``."""
        return key

    def _read(self, name: str) -> Any:
        """Return an attribute of the remote object; one that no executor holds has what stands here and no more."""
        if self.__dict__.get("_handle") == 0:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        parts = [part for reference in self._parts if (part := reference()) is not None]
        try:
            value = dispatch.ask_object(".getattr", self._here(), name, *parts)
        except AttributeError as error:
            if "is a method" in str(error):  # of a class that is not described under the name that was told
                return types.MethodType(RemoteMethod(self._qualname, name, None), self)
            if is_cupys(type(self)):
                raise
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}") from None
        self._keep_parts(parts, value)
        return in_class(self, name, (), value)

    def _keep_parts(self, known: list[ArrayCore], value: Any) -> None:
        read = [one for one in (value if isinstance(value, tuple) else (value,)) if isinstance(one, ArrayCore)]
        fresh = [one for one in read if not any(one is part for part in known)]
        for one in fresh:
            _note_part(one)
        if fresh:
            object.__setattr__(self, "_parts", tuple([weakref.ref(one) for one in (*known, *fresh)]))

    def __setattr__(self, name: str, value: object) -> None:
        if name.startswith("_") or self._is_own(name):
            object.__setattr__(self, name, value)
        else:
            dispatch.ask_object(".setattr", self._here(), name, value)

    def _is_own(self, name: str) -> bool:
        """Tell whether the attribute ``name`` is the notebook's: of a user's class, or unknown to CuPy's.

        Raises
        ------
        AttributeError
            If CuPy's objects of this class take no attributes of such a name.
        """
        found = next((vars(kind)[name] for kind in type(self).__mro__ if name in vars(kind)), None)
        if isinstance(found, (RemoteProperty, HeldConstant)) or name in held_by_instances(self._qualname):
            return False
        if found is None and is_cupys(type(self)) and not is_extensible(self._qualname):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return True

    def __dir__(self) -> list[str]:
        """List what the class has and what instances hold."""
        return sorted({*object.__dir__(self), *held_by_instances(self._qualname)})

    def __reduce__(self) -> Any:
        """Refuse to be pickled or copied: what came of it would be another object, made without arguments."""
        raise TypeError(
            f"cannot pickle or copy a {type(self).__name__!r} object: it is held by the remote GPU. "
            "Keep the arrays and numbers that it was made of, and make it again."
        )

    def _remade(self, *args: object, **kwargs: object) -> tuple[Any, ...]:
        """Return what ``__reduce__`` does of an object that CuPy's constructor makes again of these arguments."""
        state = self.__getstate__()
        if type(self).__getstate__ is object.__getstate__:
            state = _without_inner(state)
        return (_remake, (type(self), args, kwargs), state) if state else (_remake, (type(self), args, kwargs))

    def __repr__(self) -> str:
        return str(dispatch.ask_object(".method", self, "__repr__"))

    def __str__(self) -> str:
        if type(self).__repr__ is not RemoteObject.__repr__:  # a class that tells of itself here
            return repr(self)
        told = "__str__" if is_method(self._qualname, "__str__") else "__repr__"
        return str(dispatch.ask_object(".method", self, told))


def _remake(kind: type[RemoteObject], args: tuple[object, ...], kwargs: dict[str, object]) -> Any:
    """Return an object of ``kind``, of what CuPy's constructor takes; a subclass's own is not called."""
    if is_cupys(kind):
        return kind(*args, **kwargs)
    made = kind.__new__(kind)
    made._take_over(cupys_class(kind)._make(*args, **kwargs))  # type: ignore[attr-defined]
    return made


def _without_inner(state: Any) -> Any:
    """Return the state of a stand-in without what is not the user's; a pair if the user's class has slots."""
    if isinstance(state, tuple):
        return _without_inner(state[0]), state[1]
    return {name: value for name, value in (state or {}).items() if name not in _INNER} or None


def _complete(cls: type[RemoteObject]) -> None:
    """Give ``cls`` the name and the members of the class that it stands for; what is written by hand stays."""
    made = {name: member for name, member in members_of(cls._qualname).items() if not _is_written(cls, name)}
    for name, member in made.items():
        setattr(cls, name, member)
    cls.__module__ = home_of(cls._qualname)
    cls._generated = frozenset(made)


def _is_written(cls: type[RemoteObject], name: str) -> bool:
    """Tell whether a class of ours defines ``name``: then that is what ``cls`` has."""
    owner: type = next((kind for kind in cls.__mro__ if name in vars(kind)), object)
    if owner is object or (owner is RemoteObject and name == "__init__"):
        return False
    return name not in vars(owner).get("_generated", ())


class RemoteInstance(RemoteObject):
    """An object that CuPy makes at import, such as ``cupy.fft.config``: it goes by its public name."""

    def __new__(cls, qualname: str, type_name: str) -> Any:
        """Stand for the object; nothing is sent."""
        made = object.__new__(cls)
        object.__setattr__(made, "_public_name", qualname)
        object.__setattr__(made, "_qualname", type_name)
        return made

    def __init__(self, qualname: str, type_name: str) -> None:
        """Do nothing more."""

    def __del__(self) -> None:
        """Do nothing: the executor keeps it."""

    def __getattr__(self, name: str) -> Any:
        if is_method(self._qualname, name):
            return types.MethodType(RemoteMethod(self._qualname, name, None), self)
        return super().__getattr__(name)

    def _wire_value(self) -> Any:
        return wire.Name(self._public_name)


@cache
def remote_class(qualname: str) -> type[RemoteObject]:
    """Return the stand-in for the class ``qualname``: the one that we wrote, or one below those of its public bases."""
    written = _written(qualname)
    if written is not None:
        return written
    described = surface.load()
    entry = described.get(described.canonical(qualname))
    if not isinstance(entry, surface.Class):
        raise ProtocolError(f"The executor sent an object of {qualname}, which is no class.")
    bases = tuple(remote_class(base) for base in _public_bases(entry))
    return type(entry.called or qualname.rpartition(".")[2], bases or (RemoteObject,), _body(qualname))


def _written(qualname: str) -> type[RemoteObject] | None:
    """Return the stand-in that is written by hand, if there is one."""
    written = public_names.written(qualname)
    return written if isinstance(written, type) and issubclass(written, RemoteObject) else None


def _body(qualname: str) -> dict[str, Any]:
    return {"_qualname": qualname, "__doc__": ClassDoc()}


def _public_bases(entry: surface.Class) -> list[str]:
    """Return the nearest ancestors that are public and stay remote, in the order of the class."""
    known = {name: one for name in entry.mro if isinstance(one := surface.load().get(name), surface.Class)}
    remote = [name for name in known if public_names.written(name) is None or _written(name) is not None]
    return [name for name in remote if not any(name in known[other].mro for other in remote)]


def is_extensible(qualname: str) -> bool:
    """Tell whether CuPy's objects of the class take attributes of any name, as those of classes in Python do."""
    entry = surface.load().get(qualname)
    return not isinstance(entry, surface.Class) or entry.extensible


@lru_cache(maxsize=1024)  # the names are the executor's
def class_of(type_name: str) -> type[RemoteObject]:
    """Return the stand-in class for what the executor calls ``type_name``: a public name, or one of a few private."""
    if len(type_name) > _LONGEST_NAME or not _NAME.fullmatch(type_name):
        raise ProtocolError(f"The executor sent an object of {type_name[:_LONGEST_NAME]!a}, which names no class.")
    if isinstance(surface.load().get(type_name), surface.Class) or public_names.written(type_name) is not None:
        return remote_class(type_name)
    return type(type_name.rpartition(".")[2], (RemoteObject,), _body(type_name))
