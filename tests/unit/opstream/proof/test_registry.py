"""What a rule declares as an array is one: the registry looks before it calls the rule."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from gpu_backend.opstream.layout import contiguous
from gpu_backend.opstream.proof import Made, Unproved, prove, registry
from gpu_backend.opstream.proof.shadow import Array

X = contiguous((2, 3), np.dtype("f4"))


@pytest.fixture
def given() -> Iterator[list[object]]:
    """What the rule ``cupy.given(a, out, *rest, more)`` was called with."""
    seen: list[object] = []

    @registry.rule("cupy.given")
    def rule(a: Array, out: Array | None = None, *rest: Array, more: object = None) -> Made:
        seen.extend([a, out, *rest, more])
        return Made("cupy.given")

    yield seen
    del registry._rules["cupy.given"]
    registry._memory.clear()


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        ((1.0,), {}), (([X],), {}), ((None,), {}), ((), {"a": 2}), ((X, 1), {}), ((X,), {"out": "x"}),
        ((X, X, X, 3), {}),
    ],
)  # fmt: skip
def test_a_rule_that_wants_an_array_sees_nothing_else(
    given: list[object], args: tuple[object, ...], kwargs: dict[str, object]
) -> None:
    made = prove("cupy.given", args, kwargs)
    assert isinstance(made, Unproved)
    assert "where an array is wanted" in made.reason
    assert not given


def test_other_parameters_are_given_as_they_are(given: list[object]) -> None:
    assert isinstance(prove("cupy.given", (X,), {"more": "anything"}), Made)
    first, out, more = given
    assert isinstance(first, Array)
    assert (out, more) == (None, "anything")
    given.clear()
    assert isinstance(prove("cupy.given", (X, X, X), {"more": X}), Made)
    assert all(isinstance(one, Array) for one in given)


def test_every_rule_declares_its_arrays_in_words_that_the_registry_knows() -> None:
    """``Optional[Array]`` would be declared and never looked at."""
    known = {"Array", "Array | None"}
    strange = {
        (qualname, name, said)
        for qualname, rule in registry._rules.items()
        for name, said in rule.__annotations__.items()
        if name != "return" and "Array" in said and said not in known
    }
    assert not strange
