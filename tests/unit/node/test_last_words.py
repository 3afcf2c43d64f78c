"""Ends of executors are told until a gateway was there, and again where it may have died of what it was told."""

from __future__ import annotations

from gpu_backend.node.last_words import LastWords
from gpu_backend.wire.control import ExecutorEnded

ONE, OTHER = (ExecutorEnded(session, 1, "released", "The notebook released the session.") for session in "ab")


def told(words: LastWords, is_there: bool = True, was_away: bool = False, now: float = 0.0) -> list[ExecutorEnded]:
    heard: list[ExecutorEnded] = []

    def send(ended: ExecutorEnded) -> bool:
        if is_there:
            heard.append(ended)
        return is_there

    words.tell(send, was_away, now)
    return heard


def test_what_nobody_heard_is_told_when_somebody_is_there() -> None:
    words = LastWords()
    words.add(ONE)
    assert told(words, is_there=False) == []
    words.add(OTHER)
    assert told(words) == [ONE, OTHER]
    assert told(words) == []


def test_after_a_gateway_was_away_what_it_was_told_of_late_is_told_again() -> None:
    words = LastWords()
    words.add(ONE)
    assert told(words, now=0.0) == [ONE]
    words.add(OTHER)
    assert told(words, now=50.0) == [OTHER]
    assert told(words, was_away=True, is_there=False, now=59.0) == []
    assert told(words, now=59.5) == [ONE, OTHER]
    assert told(words, now=70.0) == []
    assert told(words, was_away=True, now=1_000.0) == []
