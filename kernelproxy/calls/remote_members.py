"""What the class of a remote object has: its methods and attributes as the surface describes them.

They stand in the class itself, where programs look for them: ``csr_matrix.toarray`` is there without a matrix, has
CuPy's signature and documentation, and can be overridden, called by ``super()`` and wrapped.
"""

from __future__ import annotations

import inspect
import types
from functools import partial
from typing import Any

from gpu_backend.opstream import surface
from gpu_backend.opstream.draws import is_draw
from gpu_backend.opstream.layout import Layout
from gpu_backend.opstream.proof import Made, prove
from gpu_backend.opstream.surface.objects import describe_class
from gpu_backend.wire import values as wire
from kernelproxy import compiled
from kernelproxy.calls import dispatch, repeats
from kernelproxy.calls.array_core import fresh
from kernelproxy.calls.documentation import Documented, fetch_doc
from kernelproxy.calls.encoding import Unsendable
from kernelproxy.calls.remote_function import RemoteFunction
from kernelproxy.calls.subclassing import in_class, is_cupys, warn_of_uncalled
from kernelproxy.public_names import make

#: Constants of a class that protocols ask for beside the public ones.
_PROTOCOL_CONSTANTS = frozenset({"__array_priority__", "__array_ufunc__", "__hash__"})
_ABSENT = object()
#: How many frames of ours there are at least between the pipeline and who called a method.
_DEPTH = 4


class Member(Documented):
    """What methods and the constructor have in common: they are called with the object as the first argument."""

    def __init__(self, owner: str, name: str, entry: surface.Method | surface.Class | None) -> None:
        self._owner = owner
        self._qualname = owner if name == "__init__" else f"{owner}.{name}"
        self._entry = entry
        self.__module__ = home_of(owner)
        self.__name__ = name
        self.__qualname__ = f"{owner.rpartition('.')[2]}.{name}"

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __call__(self, target: Any, *args: object, **kwargs: object) -> Any:
        """Carry out what the member does to ``target``."""
        raise NotImplementedError

    @property
    def __signature__(self) -> inspect.Signature | None:
        return None if self._entry is None else surface.signature_with_self(self._entry)

    def __reduce__(self) -> Any:
        return getattr, (make(self._owner), self.__name__)

    def __repr__(self) -> str:
        return f"<method {self._qualname} (remote)>"


class RemoteMethod(Member):
    """A method that runs in the executor."""

    def __call__(self, target: Any, *args: object, **kwargs: object) -> Any:
        """Call the method of ``target``; without waiting if what it gives is known."""
        __tracebackhide__ = True
        name = self.__name__
        if name in target._uncalled:
            warn_of_uncalled(target, name)
        return in_class(target, name, args, self._call(target._here(), args, kwargs))

    def _call(self, target: Any, args: tuple[object, ...], kwargs: dict[str, object]) -> Any:
        __tracebackhide__ = True
        given = (target, self.__name__, *args)
        return _call_anew(given, kwargs, None) if target._known is None else _call_known(repeats.METHOD, given, kwargs)

    def wire_method(self, target: Any) -> wire.Method:
        """Return how an op names this method of ``target``."""
        return wire.Method(target._wire_value().handle, self.__name__)


@partial(compiled.quick, "call")
def _call_known(verb: str, args: tuple[Any, ...], kwargs: dict[str, object]) -> Any:
    """Call a method of an object of which something is known: of ``args`` the first, by the name that is next.

    It is an op of the ``verb`` of methods, and found again as calls of functions are (`repeats`).
    """
    __tracebackhide__ = True
    kind = type(args[0])
    if kind not in repeats.DESCRIBED and is_cupys(kind):
        repeats.DESCRIBED.add(kind)
    known = repeats.known_by(verb, args, kwargs)
    if known is not None:
        key, client, wire_args, wire_kwargs = known
        form = client.pipeline.forms.get(key)
        made = None if form is None else form.made
        if form is not None and made is not None and dispatch.is_sure(client, made.held_bytes):
            handle = client.pipeline.note(form, wire_args, _DEPTH, wire_kwargs, client.streams.current_handle())
            return fresh(client, made, handle)
    return _call_anew(args, kwargs, known)


def _call_anew(args: tuple[Any, ...], kwargs: dict[str, object], known: repeats.Known | None) -> Any:
    """Call a method that is not found again; have it found by what it is ``known`` by, if what it gives is proved."""
    __tracebackhide__ = True
    target, name, *given = args
    layouts = dispatch.layouts
    proof = prove(f"{target._qualname}.{name}", (target._known, *layouts(tuple(given))), layouts(kwargs))
    if not isinstance(proof, (Layout, Made)):
        return dispatch.ask_object(repeats.METHOD, *args, **kwargs)
    if known is not None and type(owner := known[2][0]) is wire.Ref:
        size = dispatch.largest(args, proof)
        repeats.remember(known, proof, size, is_of_any_length=False, what=owner.handle)
    return dispatch.run_proved(repeats.METHOD, args, kwargs, proof)


class RemoteDraw(RemoteMethod):
    """A method that draws random numbers: called by its own name, as functions are."""

    def _call(self, target: Any, args: tuple[object, ...], kwargs: dict[str, object]) -> Any:
        __tracebackhide__ = True
        if target._qualname != self._owner:  # it is called for an object of another class, and refused in due words
            return super()._call(target, args, kwargs)
        kind = type(target)
        if kind not in repeats.GENERATORS and is_cupys(kind):
            repeats.GENERATORS.add(kind)
        return dispatch.call(self._qualname, (target, *args), kwargs)


class RemoteExit(RemoteMethod):
    """``__exit__``: the exception that ends the block is the notebook's own."""

    def __call__(self, target: Any, *args: object, **kwargs: object) -> Any:
        """Leave the context as if nothing had been raised."""
        return super().__call__(target, None, None, None)


class RemoteOperator(RemoteMethod):
    """An operator: with what only this process knows, the other operand is asked."""

    def __call__(self, target: Any, *args: object, **kwargs: object) -> Any:
        """Compute with ``target`` and another operand."""
        __tracebackhide__ = True
        try:
            return super().__call__(target, *args, **kwargs)
        except Unsendable:
            return NotImplemented


class RemoteComparison(RemoteMethod):
    """A comparison: unlike an operator's, what Python makes of nobody's answer would be wrong in silence."""

    def __call__(self, target: Any, *args: object, **kwargs: object) -> Any:
        """Compare ``target`` with another operand."""
        __tracebackhide__ = True
        try:
            return super().__call__(target, *args, **kwargs)
        except Unsendable as error:
            raise NotImplementedError(str(error)) from None


class RemoteIndexing(RemoteMethod):
    """``__getitem__`` and ``__setitem__``."""

    def __call__(self, target: Any, *args: object, **kwargs: object) -> Any:
        """Read or write what the first argument selects."""
        __tracebackhide__ = True
        key, *values = args
        return super().__call__(target, target._key(key), *values, **kwargs)


class RemoteIteration(RemoteMethod):
    """``__iter__``: what comes as a list is gone through here."""

    def __call__(self, target: Any, *args: object, **kwargs: object) -> Any:
        """Return an iterator."""
        made = super().__call__(target, *args, **kwargs)
        return iter(made) if isinstance(made, list) else made


class RemoteCall(RemoteMethod):
    """``__call__``."""

    def __call__(self, target: Any, *args: object, **kwargs: object) -> Any:
        """Call the object."""
        __tracebackhide__ = True
        return dispatch.ask_object(".call", target, *args, **kwargs)


class RemoteConstructor(Member):
    """``__init__`` of a class of CuPy."""

    def __call__(self, target: Any, *args: object, **kwargs: object) -> None:
        """Have the executor make what ``target`` stands for."""
        __tracebackhide__ = True
        target._construct(*args, **kwargs)


class RemoteProperty(property):
    """An attribute that the executor computes or holds."""

    def __init__(self, owner: str, name: str) -> None:
        self._qualname = f"{owner}.{name}"
        super().__init__(partial(_read, name))

    @property
    def __doc__(self) -> str:
        return fetch_doc(self._qualname)

    @__doc__.setter
    def __doc__(self, told: object) -> None:
        """Do nothing: from 3.13 on, properties set what they find in their getters."""


def _read(name: str, instance: Any) -> Any:
    return instance._read(name)


class HeldConstant:
    """An attribute that the class has as a constant, and each instance as it was made."""

    def __init__(self, name: str, value: Any) -> None:
        self._name, self._value = name, value

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self._value if instance is None else instance._read(self._name)


class RemoteClassMethod(RemoteFunction):
    """A class method: what a user's subclass makes by it is of the subclass."""

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        kind = type(instance) if owner is None else owner
        return self if is_cupys(kind) else _OfSubclass(self._qualname, self._entry, kind)


class _OfSubclass(RemoteFunction):
    def __init__(self, qualname: str, entry: Any, kind: type) -> None:
        super().__init__(qualname, entry)
        self.__self__ = kind

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """Call the method for the subclass."""
        __tracebackhide__ = True
        return in_class(self.__self__, self.__name__, args, super().__call__(*args, **kwargs))


_SPECIAL: dict[str, type[RemoteMethod]] = {
    "__exit__": RemoteExit,
    "__iter__": RemoteIteration,
    "__call__": RemoteCall,
    "__getitem__": RemoteIndexing,
    "__setitem__": RemoteIndexing,
    **{f"__{name}__": RemoteComparison for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    **{
        f"__{side}{name}__": RemoteOperator
        for side in ("", "r", "i")
        for name in ("add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor")
    },
}


def home_of(qualname: str) -> str:
    """Return the module that a class says it is of."""
    entry = surface.load().get(qualname)
    home = entry.home if isinstance(entry, surface.Class) else ""
    return home or qualname.rpartition(".")[0]


def members_of(qualname: str) -> dict[str, Any]:
    """Return what the class ``qualname`` has, by name. Nothing is sent."""
    described, known = surface.load(), describe_class(qualname)
    if known is None:
        return {}
    entry = described.get(qualname)
    held = frozenset(entry.held) if isinstance(entry, surface.Class) else frozenset()
    names = {*described.below(qualname), *known.methods, *known.attributes}
    body: dict[str, Any] = {}
    for name in names:
        member = _member(qualname, name, described.get(f"{qualname}.{name}"), name in held)
        if member is not _ABSENT:
            body[name] = member
    if isinstance(entry, surface.Class):
        body["__init__"] = RemoteConstructor(qualname, "__init__", entry)
    if "__eq__" in body:
        body.setdefault("__hash__", object.__hash__)
    if "__class_getitem__" in names:  # for annotations, such as ``csr_array[float]``
        body["__class_getitem__"] = classmethod(types.GenericAlias)
    return body


def _member(owner: str, name: str, entry: surface.Entry | None, is_held: bool) -> Any:
    """Return what stands for the member ``name`` in the class ``owner``; `_ABSENT` if the class has nothing there."""
    if isinstance(entry, surface.Constant):
        if name.startswith("_") and name not in _PROTOCOL_CONSTANTS:
            return _ABSENT
        return HeldConstant(name, entry.value) if is_held else entry.value
    if not surface.is_public_attribute(name):
        return _ABSENT
    if isinstance(entry, surface.Method) and entry.binding:
        kind = RemoteClassMethod if entry.binding == "class" else RemoteFunction
        return kind(f"{owner}.{name}", entry)
    if isinstance(entry, surface.Method) or is_method(owner, name):
        made = RemoteDraw if is_draw(f"{owner}.{name}") else _SPECIAL.get(name, RemoteMethod)
        return made(owner, name, entry if isinstance(entry, surface.Method) else None)
    return _ABSENT if is_held or entry is None else RemoteProperty(owner, name)


def is_method(qualname: str, name: str) -> bool:
    """Tell whether the surface knows ``name`` as a method of the class ``qualname``."""
    described = describe_class(qualname)
    return described is not None and name in described.methods


def held_by_instances(qualname: str) -> frozenset[str]:
    """Return the attributes that instances have and their class has not."""
    known, entry = describe_class(qualname), surface.load().get(qualname)
    if known is None:
        return frozenset()
    if not isinstance(entry, surface.Class):
        return known.attributes
    beside = frozenset(name for name in known.attributes if f"{qualname}.{name}" not in surface.load())
    return beside.union(entry.held)
