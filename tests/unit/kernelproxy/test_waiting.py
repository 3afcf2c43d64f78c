"""What a user reads while they wait for a place, and how the wait ends."""

from __future__ import annotations

import io
import socket
import sys
import threading
from collections.abc import Callable

import msgspec
import pytest

from gpu_backend.transport.exchange import refusal
from gpu_backend.wire.control import Denied, Done, FromGateway, LeaveQueue, OpenSession, Queued, ToGateway
from gpu_backend.wire.errors import AnswerOverdue, PoolRefusal, PoolUnreachable, RefusalCode, SessionLost
from kernelproxy import settings
from kernelproxy.client import Client, current
from kernelproxy.session import gateway_client, granting, waiting
from kernelproxy.session.notice import TerminalNotice
from kernelproxy.session.waiting import in_words
from kernelproxy.sessions import open_session
from tests.unit.workbench.conftest import gateway
from tests.unit.workbench.scripted_gateway import ScriptedGateway, a_ticket

__all__ = ["gateway"]

FULL = "The pool is full: 8 of 8 places are taken."


class Noted:
    """Keeps what it is told to show."""

    def __init__(self) -> None:
        self.shown: list[str] = []
        self.closed: list[str] = []

    def show(self, text: str) -> None:
        self.shown.append(text)

    def close(self, text: str) -> None:
        self.closed.append(text)


@pytest.fixture
def noted(monkeypatch: pytest.MonkeyPatch) -> Noted:
    notice = Noted()
    monkeypatch.setattr(current().signs.notices, "of_queue", lambda: notice)
    return notice


def test_place_guess_and_way_out_are_said() -> None:
    text = in_words(Queued(0, 2, 5, 725.0, FULL), 35.2)
    assert text.startswith(FULL)
    assert "number 2 of 5 in the queue" in text
    assert "about 12 min (a guess from recent sessions)" in text
    assert "Waiting for 35 s; interrupt to give up." in text
    assert "cannot be guessed" in in_words(Queued(0, 1, 1, -1.0, FULL), 0.0)
    assert "about 10 s" in in_words(Queued(0, 1, 1, 0.5, FULL), 0.0)
    assert in_words(Queued(0, 1, 1, -1.0, FULL), 0.4).endswith("yet. Interrupt to give up.")
    assert "about 3 h" in in_words(Queued(0, 1, 1, 10_800.0, FULL), 0.0)


def granted() -> None:
    """Open a session until it has its ticket; there is no executor behind it."""
    granting.granted(settings.load(), OpenSession(0, "a", waiter="w1"), current().signs)


def test_the_line_is_kept_up_to_date_until_there_is_a_place(gateway: ScriptedGateway, noted: Noted) -> None:
    def soon(message: ToGateway) -> FromGateway:
        place = 4 - len(gateway.asked)
        return Queued(0, place, 9, -1.0, FULL) if place else a_ticket()

    gateway.answer = soon
    granted()
    assert [f"number {place} of 9" in text for place, text in zip((3, 2, 1), noted.shown, strict=True)] == [True] * 3
    (end,) = noted.closed
    assert end.startswith("A place in the pool was free after")
    assert len({message.waiter for message in gateway.asked_for(OpenSession)}) == 1  # type: ignore[attr-defined]
    assert not gateway.asked_for(LeaveQueue)


def test_an_interrupt_leaves_the_queue(gateway: ScriptedGateway, noted: Noted, monkeypatch: pytest.MonkeyPatch) -> None:
    def pressed(text: str) -> None:
        raise KeyboardInterrupt

    gateway.answer = lambda message: Done(0) if isinstance(message, LeaveQueue) else Queued(0, 1, 1, -1.0, FULL)
    monkeypatch.setattr(noted, "show", pressed)
    with pytest.raises(KeyboardInterrupt):
        granted()
    assert [message.waiter for message in gateway.asked_for(LeaveQueue)] == ["w1"]  # type: ignore[attr-defined]
    assert noted.closed[0].startswith("No place in the pool was free: left the queue after ")


def test_who_is_not_wanted_any_more_leaves_the_queue(
    gateway: ScriptedGateway, noted: Noted, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Unwanted(Exception):
        pass

    def heed() -> None:
        if noted.shown:
            raise Unwanted

    gateway.answer = lambda message: Done(0) if isinstance(message, LeaveQueue) else Queued(0, 1, 1, -1.0, FULL)
    monkeypatch.setattr(current().signs, "heed", heed)
    with pytest.raises(Unwanted):
        granted()
    assert len(gateway.asked_for(OpenSession)) == 1
    assert [message.waiter for message in gateway.asked_for(LeaveQueue)] == ["w1"]  # type: ignore[attr-defined]


def test_somebody_else_can_leave_the_queue_for_who_waits(gateway: ScriptedGateway, noted: Noted) -> None:
    """As a signal's handler does; the gateway then refuses who asks again by that name."""
    left = threading.Event()

    def answer(message: ToGateway) -> FromGateway:
        if isinstance(message, LeaveQueue):
            left.set()
            return Done(0)
        return Denied(0, RefusalCode.UNKNOWN_SESSION, "You have left.") if left.is_set() else queued

    def withdrawn(text: str) -> None:
        farewell = threading.Thread(target=current().give_back)
        farewell.start()
        farewell.join()

    queued = Queued(0, 1, 1, -1.0, FULL)
    gateway.answer, noted.show = answer, withdrawn  # type: ignore[method-assign]
    with pytest.raises(SessionLost, match="You have left"):
        granted()
    current().give_back()  # nobody waits any more
    assert [message.waiter for message in gateway.asked_for(LeaveQueue)] == ["w1"]  # type: ignore[attr-defined]


def test_a_forked_child_does_not_leave_its_parents_queue() -> None:
    left: list[str] = []
    client = Client()
    client.signs.withdraw = lambda: left.append("queue")
    client.give_back()
    client.leave_to_parent()
    client.give_back()
    assert left == ["queue"]


def test_a_refusal_ends_the_wait_in_words(gateway: ScriptedGateway, noted: Noted) -> None:
    answers = iter([Queued(0, 1, 1, -1.0, FULL), Denied(0, RefusalCode.QUOTA, "Too many.")])
    gateway.answer = lambda message: next(answers)
    with pytest.raises(PoolRefusal, match="Too many"):
        granted()
    assert len(noted.closed) == 1


class Silent:
    """A gateway that takes requests and often answers none of them, in time that passes only while it is waited for."""

    def __init__(self, *answers: FromGateway | None) -> None:
        self._answers = iter(answers)
        self.asked: list[ToGateway] = []
        self.now = 1_000.0

    def request(self, settings: object, message: ToGateway, seconds: float) -> FromGateway:
        if isinstance(message, LeaveQueue):
            return Done(0)
        self.asked.append(message)
        answer = next(self._answers, None)
        if answer is None:
            self.now += seconds
            raise AnswerOverdue("The pool took the request and did not answer.")
        if isinstance(answer, Denied):
            raise refusal(answer)
        return answer

    def waiters(self) -> set[str]:
        return {message.waiter for message in self.asked if isinstance(message, OpenSession)}


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Silent]:
    def make(*answers: FromGateway | None) -> Silent:
        played = Silent(*answers)
        monkeypatch.setattr(gateway_client, "request", played.request)
        for module in (granting, waiting):
            monkeypatch.setattr(module, "monotonic", lambda: played.now)
        return played

    return make


@pytest.mark.usefixtures("gateway")
def test_a_gateway_that_is_away_for_a_while_ends_no_wait(silent: Callable[..., Silent], noted: Noted) -> None:
    away = [None] * int(granting.PATIENCE_SECONDS / granting.GATEWAY_SECONDS - 1)
    played = silent(Queued(0, 1, 1, -1.0, FULL), *away, a_ticket())
    granted()
    assert len(noted.shown) == 1
    assert len(played.asked) == len(away) + 2


@pytest.mark.usefixtures("gateway")
def test_a_gateway_that_took_the_request_is_asked_again(silent: Callable[..., Silent], noted: Noted) -> None:
    played = silent(None, a_ticket())
    granted()
    assert not noted.shown
    assert len(played.asked) == 2
    assert len(played.waiters()) == 1


@pytest.mark.usefixtures("gateway")
def test_only_silence_since_the_last_answer_counts(silent: Callable[..., Silent]) -> None:
    played = silent(None, None, Denied(0, RefusalCode.STARTING, "Not yet."), None, None, a_ticket())
    granted()
    assert len(played.asked) == 6


@pytest.mark.usefixtures("gateway")
def test_a_gateway_that_never_answers_is_given_up(silent: Callable[..., Silent], noted: Noted) -> None:
    played = silent()
    with pytest.raises(AnswerOverdue, match="took the request"):
        granted()
    assert not noted.shown
    assert len(played.asked) == 3  # within a quarter of a minute


@pytest.mark.usefixtures("gateway")
def test_who_asks_without_a_name_asks_once(silent: Callable[..., Silent]) -> None:
    played = silent()
    with pytest.raises(AnswerOverdue):
        open_session("doctor", may_wait=False)
    assert len(played.asked) == 1


def test_where_nobody_is_is_said_at_once(gateway: ScriptedGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(granting, "GATEWAY_SECONDS", 0.2)
    with socket.socket() as taken:  # an address at which nobody listens
        taken.bind(("127.0.0.1", 0))
        nowhere = msgspec.structs.replace(settings.load(), gateway=f"tcp://127.0.0.1:{taken.getsockname()[1]}")
        with pytest.raises(PoolUnreachable, match="Nobody answers"):
            granting.granted(nowhere, OpenSession(0, "a", waiter="w1"), current().signs)


def test_who_may_not_wait_says_so(gateway: ScriptedGateway) -> None:
    gateway.answer = lambda message: Denied(0, RefusalCode.POOL_FULL, FULL)
    with pytest.raises(PoolRefusal, match="8 of 8"):
        open_session("doctor", may_wait=False)
    (asked,) = gateway.asked_for(OpenSession)
    assert isinstance(asked, OpenSession)
    assert asked.waiter == ""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_has_one_line_and_a_log_only_the_news(monkeypatch: pytest.MonkeyPatch) -> None:
    for stream, lines in ((Terminal(), 1), (io.StringIO(), 3)):
        monkeypatch.setattr(sys, "stderr", stream)
        notice = TerminalNotice()
        for text in ("Number 2; 1 s", "Number 2; 2 s", "Number 1; 3 s"):
            notice.show(text)
        notice.close("There.")
        assert stream.getvalue().count("\n") == lines
        assert "Number 1; 3 s" in stream.getvalue()
