"""The sessions of a notebook's devices, with a pool that only plays along: all of them, or none and nothing held."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from gpu_backend.wire.errors import NoDevice, PoolFull, PoolRefusal
from kernelproxy.session.wishes import Wishes
from kernelproxy.stream import together

NOT_TOGETHER = NoDevice("No node has 2.")


class Notebook:
    """Opens what it is told to, and notes what it was asked for: sessions at once, or "beside" without waiting."""

    label = "notebook-1"
    settings: Any = None
    number = 0
    granted: Any = None

    def __init__(self, *outcomes: Any, first: Notebook | None = None) -> None:
        self.wishes = Wishes()
        self.wishes.devices = 2
        self.outcomes = list(outcomes)
        self.members: Sequence[Notebook] = ()
        self.opened: Any = None
        self.asked: list[Any] = first.asked if first is not None else []
        self.first = first
        self.held: list[Any] = first.held if first is not None else []
        #: What was given back without having been begun with.
        self.returned: list[Any] = []

    def open(self, label: str = "", may_wait: bool = True, sessions: int = 1) -> Any:
        self.asked.append(sessions if may_wait else self.granted or "beside")
        outcome = (self.first or self).outcomes.pop(0)
        if isinstance(outcome, BaseException):
            raise outcome
        if self.first is None and outcome != "both":
            other = Notebook(first=self)
            other.number = 1
            self.members = (self, other)
        self.granted = None
        beside = ("ticket",) if outcome == "set" else ()
        return SimpleNamespace(name=outcome, beside=beside, close=lambda release: self.returned.append(outcome))

    def begin(self, opened: Any) -> None:
        self.opened = opened
        self.held.append(opened.name)

    def part_with(self) -> None:
        self.returned += [one.granted for one in self.members[1:] if one.granted is not None]
        self.members, self.wishes.apart = (), ""

    def give_up(self) -> None:
        self.held.clear()
        self.part_with()
        self.opened = None


def test_one_session_has_all_where_that_can_be() -> None:
    client = Notebook("both")
    together.open_all(client)
    assert (client.asked, client.held) == ([1], ["both"])


def test_else_one_for_each_is_asked_for_at_once() -> None:
    client = Notebook(NOT_TOGETHER, "set", "other")
    together.open_all(client)
    assert (client.asked, client.held) == ([1, 2, "ticket"], ["set", "other"])
    assert client.wishes.apart == "notebook-1"


def test_what_a_kernel_kept_has_another_beside_it_if_that_is_free() -> None:
    client = Notebook("kept", "other")
    together.open_all(client)
    assert (client.asked, client.held) == ([1, "beside"], ["kept", "other"])


def test_what_a_kernel_kept_is_given_up_before_all_are_waited_for() -> None:
    client = Notebook("kept", PoolFull("full"), "set", "other")
    together.open_all(client)
    assert (client.asked, client.held) == ([1, "beside", 2, "ticket"], ["set", "other"])


@pytest.mark.parametrize(
    ("outcomes", "said"),
    [
        ((NOT_TOGETHER, PoolRefusal("no")), "No node has 2. Nor can 2 devices be had of a session each: no"),
        ((NOT_TOGETHER, "set", PoolFull("full")), "No node has 2. Nor can 2 devices be had of a session each: full"),
        (("kept", NoDevice("gone")), "Nor can 2 devices be had of a session each: gone"),
        ((NOT_TOGETHER, KeyboardInterrupt("interrupted")), "interrupted"),
        ((NOT_TOGETHER, "set", KeyboardInterrupt("interrupted")), "interrupted"),
    ],
)
def test_without_all_there_is_none(outcomes: tuple[Any, ...], said: str) -> None:
    client = Notebook(*outcomes)
    with pytest.raises(type(outcomes[-1])) as raised:
        together.open_all(client)
    assert str(raised.value) == said
    assert (client.held, client.members, client.wishes.apart) == ([], (), "")


@pytest.mark.parametrize(
    ("interrupted", "is_taken", "returned"),
    [("set", True, ["ticket"]), ("set", False, ["set", "ticket"]), ("other", True, []), ("other", False, ["ticket"])],
)
def test_an_interrupt_leaves_no_ticket_with_nobody(
    interrupted: str, is_taken: bool, returned: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Be it while one is taken over, or before."""
    begin = Notebook.begin

    def begun(self: Notebook, opened: Any) -> None:
        if opened.name != interrupted or is_taken:
            begin(self, opened)
        if opened.name == interrupted:
            raise KeyboardInterrupt

    monkeypatch.setattr(Notebook, "begin", begun)
    client = Notebook(NOT_TOGETHER, "set", "other")
    with pytest.raises(KeyboardInterrupt):
        together.open_all(client)
    assert (client.held, client.members, client.returned) == ([], (), returned)


def test_an_interrupt_leaves_no_session_of_all_with_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(self: Notebook, opened: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Notebook, "begin", interrupted)
    client = Notebook("both")
    with pytest.raises(KeyboardInterrupt):
        together.open_all(client)
    assert client.returned == ["both"]
