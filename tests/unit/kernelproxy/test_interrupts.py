"""An interrupt that strikes while an array ends is not lost."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from kernelproxy import interrupts
from kernelproxy.array_core import ArrayCore


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What others are told; the hook that was there before is back afterwards."""
    given: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", given.append)
    interrupts.install()
    interrupts.install()
    return given


def test_an_interrupt_while_an_array_ends_is_delivered_again(told: list[Any]) -> None:
    unraisable: Any = SimpleNamespace(exc_type=KeyboardInterrupt, object=ArrayCore.__del__)
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012 (it strikes between any two instructions that follow)
        sys.unraisablehook(unraisable)
        for _ in range(1000):
            pass
    assert told == []


def test_anything_else_is_told_as_before(told: list[Any]) -> None:
    others: list[Any] = [
        SimpleNamespace(exc_type=KeyboardInterrupt, object=print),
        SimpleNamespace(exc_type=ValueError, object=ArrayCore.__del__),
    ]
    for unraisable in others:
        sys.unraisablehook(unraisable)
    assert told == others
