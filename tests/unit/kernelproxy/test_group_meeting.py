"""How a process of a group waits for the others: what it goes on after, and what it says when it does not."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from gpu_backend.transport.exchange import refusal
from gpu_backend.wire.control import Denied
from gpu_backend.wire.errors import OpCancelled, PoolError, PoolRefusal, PoolUnreachable, RefusalCode, SessionLost
from gpu_backend.wire.groups import Group
from kernelproxy.namespace.process_group import meeting
from kernelproxy.namespace.process_group.meeting import channels_to, patiently

NAME = "127.0.0.1:13333"
MET = Group(0, (), ("", "a channel"))
TOO_MANY = refusal(Denied(0, RefusalCode.OVER_CREDIT, "32 requests of yours are waiting already."))


class Told:
    """A client whose pool answers as it is told."""

    def __init__(self, *answers: Group | BaseException) -> None:
        self.asked: list[str] = []
        self.left: list[str] = []
        self.cancelled = threading.Event()
        self._answers = list(answers)
        connection = SimpleNamespace(welcome=SimpleNamespace(minor=3))
        pipeline = SimpleNamespace(connection=connection, call=lambda *of: SimpleNamespace(value=""))
        session = SimpleNamespace(
            pipeline=pipeline, synchronize=lambda: None, join_group=self._join, cancel_pending=self.cancelled.set,
            leave_group=lambda name, size, rank, attempt: self.left.append(attempt),
        )  # fmt: skip
        signs = SimpleNamespace(heed=lambda: None, look=lambda *of: None, settle=lambda raised: None)
        self.client: Any = SimpleNamespace(session=session, pipeline=pipeline, signs=signs)

    def _join(self, name: str, size: int, rank: int, attempt: str) -> Group:
        self.asked.append(attempt)
        answer = self._answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer


@pytest.fixture
def naps(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    taken: list[float] = []
    monkeypatch.setattr(meeting, "sleep", taken.append)
    return taken


def test_who_is_answered_at_once_does_not_ask_without_a_pause(naps: list[float]) -> None:
    told = Told(Group(0, (1,)), Group(0, (1,)), MET)
    assert channels_to(told.client, NAME, 2, 0) == ("", "a channel")
    assert len(naps) == 2
    assert len(set(told.asked)) == 1
    assert told.left == []


@pytest.mark.parametrize("error", [PoolUnreachable("It starts."), TOO_MANY])
def test_a_pool_that_cannot_answer_now_is_asked_again(naps: list[float], error: PoolError) -> None:
    assert channels_to(Told(error, MET).client, NAME, 2, 0) == ("", "a channel")
    assert len(naps) == 1


def test_who_waits_is_not_missing_itself(naps: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meeting, "PATIENCE_SECONDS", -1.0)
    with pytest.raises(TimeoutError, match="rank 1 did not come"):  # and not our own
        channels_to(Told().client, NAME, 2, 0)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), PoolRefusal("Another is rank 0."), SessionLost("Over.")])
def test_who_does_not_wait_any_more_says_so(naps: list[float], error: BaseException) -> None:
    told = Told(Group(0, (1,)), error)
    with pytest.raises(type(error)):
        channels_to(told.client, NAME, 2, 0)
    assert told.left == told.asked[:1]


def test_those_who_had_all_come_are_not_waited_for_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meeting, "PATIENCE_SECONDS", 0.01)
    told = Told()

    def wait() -> None:
        assert told.cancelled.wait(60.0)
        raise OpCancelled("It was dropped.")

    with pytest.raises(TimeoutError, match=f"All processes of the group {NAME} had come"), patiently(told.client, NAME):
        wait()


def test_what_fails_meanwhile_is_told_as_it_is() -> None:
    told = Told()
    with pytest.raises(SessionLost, match="Over"), patiently(told.client, NAME):
        raise SessionLost("Over.")
    with patiently(told.client, NAME):
        pass
    assert not told.cancelled.is_set()
