"""The table of rules, by public name, and how one is applied."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from inspect import CO_VARARGS
from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np

from gpu_backend.opstream import surface
from gpu_backend.opstream.layout import Layout, SparseLayout
from gpu_backend.opstream.proof import host_values, ufuncs
from gpu_backend.opstream.proof.arguments import is_known
from gpu_backend.opstream.proof.outcome import CannotProve, Later, Made, Proof, Unproved, Warned, WillRaise
from gpu_backend.opstream.proof.shadow import Array, array, proof_of, wrapped
from gpu_backend.opstream.proof.values import Items, is_items

#: What a rule returns: what the CuPy function returns, with `Array` for arrays.
Result: TypeAlias = "Array | Made | Later | Warned | list[Array] | tuple[Array, ...] | None"
#: A rule has the parameters of the CuPy function.
Rule: TypeAlias = Callable[..., Result]
A = TypeVar("A", bound=tuple[object, ...])
R = TypeVar("R", bound=Rule)


class _Declared(NamedTuple):
    """How a rule annotates its parameters.

    Attributes
    ----------
    places
        Those that may be given by place.
    further
        All places after those, "" if there are none.
    names
        All of them by name.
    """

    places: tuple[str, ...]
    further: str
    names: dict[str, str]


#: How a rule declares a parameter that must be an array, and one that may be.
_ARRAY, _MAYBE_ARRAY = "Array", "Array | None"

_rules: dict[str, Rule] = {}
#: Rules that hold for every dtype, structured ones too.
_any_dtype: set[str] = set()
_memory: dict[tuple[object, ...], Proof] = {}
_MOST_REMEMBERED = 8_192
_PLAIN = frozenset({int, float, bool, complex, str, bytes, type(None), type(Ellipsis), type, Layout, SparseLayout})


def rule(*qualnames: str, any_dtype: bool = False) -> Callable[[R], R]:
    """Register a rule under its public names. What it declares as an `Array` is one whenever it is applied."""

    def register(function: R) -> R:
        for qualname in qualnames:
            _rules[qualname] = function
            if any_dtype:
                _any_dtype.add(qualname)
        return function

    return register


def has_rule(qualname: str) -> bool:
    """Tell whether anything is known of ``qualname``."""
    return _find(qualname) is not None


def apply(qualname: str, args: tuple[object, ...], kwargs: dict[str, object]) -> Proof:
    """Return what the rule of ``qualname`` proves; remembered, where the arguments can be.

    Raises
    ------
    Exception
        What CuPy raises, if that is proved.
    """
    return remembered(_apply, qualname, args, kwargs)


def remembered(
    work: Callable[[str, A, dict[str, object]], Proof], qualname: str, args: A, kwargs: dict[str, object]
) -> Proof:
    """Return ``work(qualname, args, kwargs)``, from memory if these arguments can be and have been remembered."""
    key = key_of(qualname, args, kwargs)
    if key is None:
        return work(qualname, args, kwargs)
    try:
        return _memory[key]
    except KeyError:
        proof = work(qualname, args, kwargs)
    if len(_memory) >= _MOST_REMEMBERED:
        _memory.clear()
    _memory[key] = proof
    return proof


def _apply(qualname: str, args: tuple[object, ...], kwargs: dict[str, object]) -> Proof:
    host_values.refuse(qualname, args, kwargs)
    found = _find(qualname)
    if found is None:
        return Unproved(f"no rule for {qualname}")
    try:
        if isinstance(found, ufuncs.UfuncRule):
            return found.call(args, kwargs)
        return _shadowed(qualname, found, args, kwargs)
    except CannotProve as unknown:
        return Unproved(str(unknown))
    except WillRaise as known:
        raise known.release() from None
    except Exception as error:
        # A rule that trips over an argument has proved nothing. The executor knows what CuPy makes of it.
        return Unproved(f"the rule of {qualname} does not know these arguments: {error!r}")


def _shadowed(qualname: str, function: Rule, args: tuple[object, ...], kwargs: dict[str, object]) -> Proof:
    if qualname not in _any_dtype:
        _check_dtypes(args)
        _check_dtypes(tuple(kwargs.values()))
    shadows = [wrapped(argument, place) for place, argument in enumerate(args)]
    keywords = {name: wrapped(argument, name) for name, argument in kwargs.items()}
    declared = _declared(function)
    for place, value in enumerate(shadows):
        _check_array(declared.places[place] if place < len(declared.places) else declared.further, value)
    for name, value in keywords.items():
        _check_array(declared.names.get(name, ""), value)
    return _proof(function(*shadows, **keywords), [*shadows, *keywords.values()])


@cache
def _declared(function: Rule) -> _Declared:
    code, names = function.__code__, function.__annotations__
    places = tuple([names.get(name, "") for name in code.co_varnames[: code.co_argcount]])
    further = code.co_varnames[code.co_argcount + code.co_kwonlyargcount] if code.co_flags & CO_VARARGS else ""
    return _Declared(places, names.get(further, ""), names)


def _check_array(declared: str, value: object) -> None:
    """End unless ``value`` is an array where one is declared."""
    if declared == _ARRAY or (declared == _MAYBE_ARRAY and value is not None):
        array(value)


def _proof(made: Result, given: list[object]) -> Proof:
    """Return the proof that is in the result of a rule."""
    if made is None or isinstance(made, (Made, Later, Warned)):
        return made
    if isinstance(made, Array):
        return proof_of(made, given)
    proofs = [proof_of(one, given) for one in made]
    return proofs if isinstance(made, list) else tuple(proofs)


def _find(qualname: str) -> Rule | ufuncs.UfuncRule | None:
    found = _rules.get(qualname)
    if found is not None:
        return found
    canonical = surface.load().canonical(qualname)
    if canonical in _rules:
        return _rules[canonical]
    try:
        return ufuncs.rule_for(canonical)
    except KeyError:
        return None


def _check_dtypes(values: Items) -> None:
    for value in values:
        if isinstance(value, Layout):
            if not is_known(value.dtype):
                raise CannotProve(f"dtype {value.dtype}")
        elif is_items(value):
            _check_dtypes(value)


def key_of(qualname: str, args: tuple[object, ...], kwargs: dict[str, object]) -> tuple[object, ...] | None:
    """Return what the proof depends on, or None if an argument cannot be remembered.

    Types stand beside values: 1, 1.0 and True are equal, and not the same to CuPy.
    """
    parts: list[object] = [qualname]
    for argument in args:
        if not _add(parts, argument):
            return None
    for name in sorted(kwargs):
        parts.append(name)
        if not _add(parts, kwargs[name]):
            return None
    return tuple(parts)


def _add(parts: list[object], value: object) -> bool:
    kind = type(value)
    if kind in _PLAIN or isinstance(value, (np.generic, np.dtype)):
        parts.append(kind)
        parts.append(value)
        return True
    if type(value) is tuple or type(value) is list:
        parts.append(kind)
        parts.append(len(value))
        return len(value) <= 32 and all(_add(parts, item) for item in value)
    if type(value) is slice:
        parts.append(kind)
        return _add(parts, value.start) and _add(parts, value.stop) and _add(parts, value.step)
    return False
