"""What the surface description holds: one entry for each public name of CuPy.

An entry states facts only (kinds, signatures, type tables, bases). Documentation is asked of the executor when wanted.
"""

from __future__ import annotations

import ast
import inspect
from enum import StrEnum
from typing import Any, Union

import msgspec


class Returns(StrEnum):
    """What a function gives back, as far as its name alone tells."""

    ARRAY = "array"  #: always one array
    ARRAYS = "arrays"  #: always a tuple or list of arrays
    DEPENDS = "depends"  #: one array or several, or a host value, by its arguments
    HOST = "host"  #: a value of the host: int, tuple, str, NumPy array, dtype, ...
    NONE = "none"  #: None: it changes an argument or the state, or prints
    OBJECT = "object"  #: an object of a class of the surface that is no array
    UNKNOWN = "unknown"  #: nobody has classified it


class Module(msgspec.Struct, frozen=True, tag="module", tag_field="kind", omit_defaults=True):
    """A module. Its names are the entries below it."""


class Alias(msgspec.Struct, frozen=True, tag="alias", tag_field="kind", omit_defaults=True):
    """A second name of the object that is described under ``target``."""

    target: str


class NumpyName(msgspec.Struct, frozen=True, tag="numpy", tag_field="kind", omit_defaults=True):
    """An object of NumPy or of Python that CuPy hands on unchanged, such as ``cupy.float32``."""

    target: str


class Constant(msgspec.Struct, frozen=True, tag="constant", tag_field="kind", omit_defaults=True):
    """A value. ``literal`` is its ``repr``."""

    literal: str

    @property
    def value(self) -> Any:
        """The value itself: None, bool, int, float, complex, str, or a tuple, list or dict of such."""
        if self.literal in _NOT_LITERALS:
            return float(self.literal)
        return ast.literal_eval(self.literal)


class Instance(msgspec.Struct, frozen=True, tag="instance", tag_field="kind", omit_defaults=True):
    """An object made at import, such as ``cupy.r_``. ``type_name`` is the name of its class, public or not."""

    type_name: str


class Function(msgspec.Struct, frozen=True, tag="function", tag_field="kind", omit_defaults=True):
    """A function. ``signature`` is its parameter list as Python source, "" if it is not known.

    ``home`` is the module that it says it is of, where that is another than its name says; ``called`` its own name.
    """

    signature: str = ""
    returns: Returns = Returns.UNKNOWN
    local: bool = False  #: works on the caller's files, terminal or process: the client runs it, an executor never
    home: str = ""
    called: str = ""


class Ufunc(msgspec.Struct, frozen=True, tag="ufunc", tag_field="kind", omit_defaults=True):
    """A universal function.

    Attributes
    ----------
    name
        As in its error messages, such as "cupy_add".
    types
        Its loops in the order in which they are tried, as in ``ufunc.types``; those of ``refused`` raise TypeError.
    out_types
        The loops that an explicit ``dtype=`` chooses from, where they are others than ``types``.
    refused
        Signature to error message, for loops that exist only to refuse.
    resolved
        Signatures whose result dtype depends on more than the characters (structured dtypes).
    casting
        The default of the keyword ``casting``.
    promotion
        Name of the function that alters the operand dtypes before a loop is chosen, "" if none does.
    scatter
        Whether ``at`` works.
    """

    name: str
    nin: int
    nout: int
    types: tuple[str, ...]
    out_types: tuple[str, ...] = ()
    refused: dict[str, str] = {}
    resolved: tuple[str, ...] = ()
    casting: str = "same_kind"
    promotion: str = ""
    scatter: bool = False


class GeneralizedUfunc(msgspec.Struct, frozen=True, tag="gufunc", tag_field="kind", omit_defaults=True):
    """A generalised universal function, such as ``cupy.matmul``; ``signature`` is that of its core dimensions."""

    signature: str


class Class(msgspec.Struct, frozen=True, tag="class", tag_field="kind", omit_defaults=True):
    """A class; its methods and properties are the entries below it, inherited ones included.

    ``signature`` is that of its constructor, without ``self``. ``mro`` leaves out the class itself and ``object``;
    classes without a public name stand there by their private one. ``home`` and ``called`` are as those of a
    `Function`. ``held`` are the attributes that instances are given by their methods; unless such a name is a constant
    too, the class itself does not have it. Of an ``extensible`` class instances take attributes of any other name.
    """

    bases: tuple[str, ...]
    mro: tuple[str, ...] = ()
    signature: str = ""
    exception: bool = False
    local: bool = False
    home: str = ""
    called: str = ""
    held: tuple[str, ...] = ()
    extensible: bool = False


class Method(msgspec.Struct, frozen=True, tag="method", tag_field="kind", omit_defaults=True):
    """A method. ``binding`` is "class" or "static" where it is not bound to an instance.

    ``summary`` is the first line of its documentation; that of arrays only, whose methods are functions here.
    """

    signature: str = ""
    returns: Returns = Returns.UNKNOWN
    binding: str = ""
    local: bool = False
    summary: str = ""


class Property(msgspec.Struct, frozen=True, tag="property", tag_field="kind", omit_defaults=True):
    """An attribute that instances compute or hold."""


Entry = Union[  # noqa: UP007 (msgspec wants one typing construct)
    Module, Alias, NumpyName, Constant, Instance, Function, Ufunc, GeneralizedUfunc, Class, Method, Property,
]  # fmt: skip

_NOT_LITERALS = frozenset({"inf", "-inf", "nan"})


class Shown:
    """Stands for a default that has no literal, in `signature_of`: shows as it is written in CuPy."""

    def __init__(self, source: str) -> None:
        self._source = source

    def __repr__(self) -> str:
        return self._source


def signature_of(entry: Function | Method | Class) -> inspect.Signature | None:
    """Return the signature for ``inspect.signature`` and ``help``, or None if it is not known.

    Defaults that are literals are the values themselves; others are objects that only look like them.
    """
    if not entry.signature:
        return None
    definition = ast.parse(f"def f{entry.signature}: ...").body[0]
    assert isinstance(definition, ast.FunctionDef)
    arguments = definition.args
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(positional) - len(arguments.defaults)) + list(arguments.defaults)
    made: list[inspect.Parameter] = []
    for index, (argument, default) in enumerate(zip(positional, defaults, strict=True)):
        only = index < len(arguments.posonlyargs)
        kind = inspect.Parameter.POSITIONAL_ONLY if only else inspect.Parameter.POSITIONAL_OR_KEYWORD
        made.append(inspect.Parameter(argument.arg, kind, default=_default(default)))
    if arguments.vararg:
        made.append(inspect.Parameter(arguments.vararg.arg, inspect.Parameter.VAR_POSITIONAL))
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        made.append(inspect.Parameter(argument.arg, inspect.Parameter.KEYWORD_ONLY, default=_default(default)))
    if arguments.kwarg:
        made.append(inspect.Parameter(arguments.kwarg.arg, inspect.Parameter.VAR_KEYWORD))
    return inspect.Signature(made)


def signature_with_self(entry: Method | Class) -> inspect.Signature | None:
    """Return the signature of what a class has, as it is found there: with ``self``; None if it is not known."""
    known = signature_of(entry)
    if known is None:
        return None
    parameters = list(known.parameters.values())
    is_positional = any(one.kind is inspect.Parameter.POSITIONAL_ONLY for one in parameters)
    kind = inspect.Parameter.POSITIONAL_ONLY if is_positional else inspect.Parameter.POSITIONAL_OR_KEYWORD
    return known.replace(parameters=[inspect.Parameter("self", kind), *parameters])


def _default(node: ast.expr | None) -> Any:
    if node is None:
        return inspect.Parameter.empty
    try:
        return ast.literal_eval(node)
    except ValueError:
        return Shown(ast.unparse(node))
