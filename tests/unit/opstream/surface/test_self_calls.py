"""Which methods certainly call others of the same object, read off sources."""

from __future__ import annotations

from typing import Any

from gpu_backend.opstream import surface
from gpu_backend.opstream.surface import self_calls


class Base:
    def draw(self) -> int:
        return 1

    def shift(self) -> int:
        return 0

    def _inner(self) -> int:
        return self.draw()


class Derived(Base):
    def twice(self) -> int:
        return 2 * self.draw()

    def by_a_private_one(self) -> int:
        return self._inner()

    def by_another(self) -> int:
        return self.twice()

    def perhaps(self, fast: bool) -> int:
        if fast:
            return self.draw()
        return 0

    def after_a_return(self, fast: bool) -> int:
        if fast:
            return 0
        return self.draw()

    def asked_first(self) -> int:
        if self.draw():
            raise ValueError
        return self.shift()

    def or_else(self, known: int) -> int:
        return known or self.draw()

    def of_another(self, other: Base) -> int:
        return other.draw()

    def as_a_value(self) -> Any:
        return self.draw


def test_calls_that_are_sure_to_come_are_found() -> None:
    assert self_calls.self_calls(Derived) == {
        "twice": ("draw",),
        "by_a_private_one": ("draw",),
        "by_another": ("draw", "twice"),
        "asked_first": ("draw", "shift"),
    }


def test_classes_without_a_source_call_nothing_that_is_known() -> None:
    assert self_calls.self_calls(int) == {}


def test_the_file_names_methods_that_there_are() -> None:
    described = surface.load()
    known = self_calls.load()
    assert known["cupy.random.RandomState"]["rand"] == ("random_sample",)
    assert known["cupyx.scipy.sparse.csr_matrix"]["todense"] == ("toarray",)
    for name, calls in known.items():
        for method, called in calls.items():
            assert {method, *called} <= set(described.below(name)), (name, method)
