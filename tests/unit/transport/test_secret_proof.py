"""The proof of a secret: nothing that was said is of use again, on another way, or to the other side."""

from __future__ import annotations

import os

import pytest

from gpu_backend.transport.secret_proof import (
    ANSWER_BYTES,
    LOCAL_WAY,
    OPENING_BYTES,
    REFUSAL,
    VERDICT_BYTES,
    Connecting,
    Listening,
    UnknownVersion,
)

SECRET = os.urandom(32)


def test_both_sides_prove_that_they_know_the_secret() -> None:
    listening = Listening([SECRET], LOCAL_WAY)
    connecting = Connecting(SECRET, LOCAL_WAY, listening.opening)
    verdict = listening.verdict(connecting.answer)
    assert connecting.is_proved_by(verdict)
    assert (len(listening.opening), len(connecting.answer), len(verdict)) == (
        OPENING_BYTES, ANSWER_BYTES, VERDICT_BYTES
    )  # fmt: skip


@pytest.mark.parametrize(("secret", "way"), [(os.urandom(32), LOCAL_WAY), (SECRET, b"tls " + b"c" * 64)])
def test_another_secret_and_another_way_are_refused_by_both(secret: bytes, way: bytes) -> None:
    listening = Listening([SECRET], LOCAL_WAY)
    connecting = Connecting(secret, way, listening.opening)
    assert listening.verdict(connecting.answer) == REFUSAL
    assert not connecting.is_proved_by(Listening([secret], LOCAL_WAY).verdict(connecting.answer))


def test_an_answer_is_good_once() -> None:
    listening = Listening([SECRET], LOCAL_WAY)
    answer = Connecting(SECRET, LOCAL_WAY, listening.opening).answer
    assert listening.verdict(answer) != REFUSAL
    assert Listening([SECRET], LOCAL_WAY).verdict(answer) == REFUSAL


def test_what_one_side_said_is_no_proof_of_the_other() -> None:
    """Somebody who knows nothing sends back what he was sent, in either role."""
    listening = Listening([SECRET], LOCAL_WAY)
    connecting = Connecting(SECRET, LOCAL_WAY, listening.opening)
    assert not connecting.is_proved_by(connecting.answer[-VERDICT_BYTES:])
    verdict = listening.verdict(connecting.answer)
    assert listening.verdict(connecting.answer[: ANSWER_BYTES - VERDICT_BYTES] + verdict) == REFUSAL
    mirrored = Listening([SECRET], LOCAL_WAY)
    mirrored._nonce = connecting.answer[: ANSWER_BYTES - VERDICT_BYTES]
    assert mirrored.verdict(listening._nonce + verdict) == REFUSAL


def test_a_refusal_proves_nothing() -> None:
    assert not Connecting(SECRET, LOCAL_WAY, Listening([SECRET], LOCAL_WAY).opening).is_proved_by(REFUSAL)


@pytest.mark.parametrize("opening", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n........", bytes(OPENING_BYTES)])
def test_what_is_no_opening_is_not_answered(opening: bytes) -> None:
    with pytest.raises(UnknownVersion):
        Connecting(SECRET, LOCAL_WAY, opening)
