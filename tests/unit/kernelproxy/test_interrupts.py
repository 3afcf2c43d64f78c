"""An interrupt that strikes while something remote ends is not lost, and neither is what ends."""

from __future__ import annotations

import sys
from collections import deque
from time import monotonic
from types import SimpleNamespace
from typing import Any

import pytest

from gpu_backend.wire import values as wire
from kernelproxy.calls import interrupts
from kernelproxy.calls.array_core import ArrayCore
from kernelproxy.calls.remote_object import RemoteObject


def wait_to_be_struck() -> None:
    """Wait for an interrupt, in a frame of its own.

    What strikes at the end of a loop's turn is caught by no ``try`` around that loop with CPython 3.13, whose compiler
    takes the jump for one that never raises.
    """
    until = monotonic() + 60
    while monotonic() < until:
        pass


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What others are told; the hook that was there before is back afterwards."""
    given: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", given.append)
    interrupts.install()
    interrupts.install()
    return given


class Strike:
    """Stands where a finalizer reads; raises once, as a signal handler would there, and gives ``value`` after that."""

    def __init__(self, value: object) -> None:
        self.value, self.strikes = value, 1

    def __get__(self, instance: object, owner: type) -> object:
        if instance is not None and self.strikes:
            self.strikes = 0
            raise KeyboardInterrupt
        return self.value


def struck_array(dropped: deque[Any], place: str) -> ArrayCore:
    parts = {"_dropped": dropped, "_ref": wire.Ref(7), "_layout": None}
    parts[place] = Strike(parts[place])
    return type("Struck", (ArrayCore,), {"__slots__": (), **parts})()  # type: ignore[no-any-return]


def struck_object(dropped: deque[Any], place: str) -> RemoteObject:
    parts = {"_dropped": dropped, "_handle": 7, "__slots__": ()}
    parts[place] = Strike(parts[place])
    return object.__new__(type("Struck", (RemoteObject,), parts))


@pytest.mark.parametrize(
    ("make", "place"),
    [
        *[(struck_array, place) for place in ("_dropped", "_ref", "_layout")],
        *[(struck_object, place) for place in ("_handle", "_dropped")],
    ],
)
def test_an_interrupt_while_something_ends_is_delivered_again(told: list[Any], make: Any, place: str) -> None:
    dropped: deque[Any] = deque()
    ending = make(dropped, place)
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012 (it strikes between any two instructions that follow)
        del ending
        wait_to_be_struck()
    assert list(dropped) == [(7, None)]
    assert told == []


def test_an_interrupt_in_an_end_that_is_not_ours_is_told_and_delivered_again(told: list[Any]) -> None:
    class Ending:
        def __del__(self) -> None:
            raise KeyboardInterrupt

    ending = Ending()
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012 (as above)
        del ending
        wait_to_be_struck()
    assert [one.exc_type for one in told] == [KeyboardInterrupt]


def test_anything_else_is_told_as_before(told: list[Any]) -> None:
    other: Any = SimpleNamespace(exc_type=ValueError, exc_traceback=None)
    sys.unraisablehook(other)
    assert told == [other]


def test_an_array_that_an_interrupt_left_half_made_ends_without_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", told.append)
    object.__new__(ArrayCore)
    assert told == []
