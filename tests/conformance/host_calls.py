"""Calls with an array of NumPy in a place where CuPy takes only its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from gpu_backend.opstream import surface
from gpu_backend.opstream.surface.host_values import HostRefusal, host_facts
from tests.conformance.infer_calls import TEMPLATES, Array, Call, Made, calls

_NOTHING = HostRefusal(error="", message="")


class HostCall(NamedTuple):
    """A call, the parameter that gets an array of NumPy, and what is said of it."""

    call: Call
    parameter: str
    refusal: HostRefusal

    @property
    def shape(self) -> tuple[int, ...]:
        """What the array of NumPy has."""
        return _on_host(self.call, self.parameter)[0].shape

    def arguments(self, array: Callable[[Array], Any], on_host: bool = True) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments, made by ``array`` but for the one that lies on the host (if it does)."""
        place = _place(self.call, self.parameter)

        def made(key: int | str, value: Any) -> Any:
            if isinstance(value, Array):
                return np.ones(value.shape, value.dtype) if on_host and key == place else array(value)
            if isinstance(value, (list, tuple)):
                return type(value)(made(key, one) for one in value)
            return value

        args = tuple(made(place, value) for place, value in enumerate(self.call.args))
        return args, {name: made(name, value) for name, value in self.call.kwargs.items()}


def names() -> list[str]:
    """Return the functions of which calls can be drawn."""
    return sorted(name for name in TEMPLATES if name in host_facts() and host_facts()[name].refusals)


def host_calls(qualname: str, seed: int, count: int) -> Iterator[HostCall]:
    """Yield calls of ``qualname``, one for each parameter and draw in which it is an array that is large enough."""
    facts = host_facts()[qualname]
    for call in calls(seed, count, [qualname]):
        for parameter in facts.refusals:
            refusal = facts.refusal(parameter, len(call.args) + len(call.kwargs))
            assert refusal is not None
            has_objects = any(isinstance(one, Made) for one in call.args)
            if not has_objects and _is_refused(refusal, call, parameter):
                yield HostCall(call, parameter, refusal)


def _is_refused(refusal: HostRefusal, call: Call, parameter: str) -> bool:
    given = [np.empty(one.shape) for one in (*call.args, *call.kwargs.values()) if isinstance(one, Array)]
    return any(refusal.is_of(one, given) for one in _on_host(call, parameter))


def other_host_calls(qualname: str, seed: int, count: int) -> Iterator[HostCall]:
    """Yield calls of ``qualname``, one for each draw and each array that no fact is about."""
    known = host_facts()[qualname].refusals if qualname in host_facts() else {}
    entry = surface.load()[qualname]
    assert isinstance(entry, surface.Function)
    signature = surface.signature_of(entry)
    for call in calls(seed, count, [qualname]):
        for parameter in signature.parameters if signature is not None else ():
            if parameter not in known and _on_host(call, parameter):
                yield HostCall(call, parameter, _NOTHING)


def _on_host(call: Call, parameter: str) -> list[np.ndarray[Any, Any]]:
    """Return the arrays that are given there."""
    place = _place(call, parameter)
    given = call.kwargs.get(place) if isinstance(place, str) else call.args[place] if place is not None else None
    values = given if isinstance(given, (list, tuple)) and not isinstance(given, Array) else (given,)
    return [np.empty(one.shape) for one in values if isinstance(one, Array)]


def _place(call: Call, parameter: str) -> int | str | None:
    """Return where a call gives ``parameter``: a place among the arguments, a keyword, or nowhere."""
    if parameter in call.kwargs:
        return parameter
    entry = surface.load()[call.qualname]
    if isinstance(entry, surface.GeneralizedUfunc):
        return int(parameter)
    assert isinstance(entry, (surface.Function, surface.Method))
    signature = surface.signature_of(entry)
    assert signature is not None
    place = list(signature.parameters).index(parameter) + isinstance(entry, surface.Method)
    return place if place < len(call.args) else None
