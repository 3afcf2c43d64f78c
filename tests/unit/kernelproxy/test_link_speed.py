"""When it pays to hash what is uploaded."""

from __future__ import annotations

import pytest

from gpu_backend.opstream.contents import digest_of
from kernelproxy.stream import link_speed
from kernelproxy.stream.link_speed import LinkSpeed

CONTENT = bytes(1000)


@pytest.fixture
def speed(monkeypatch: pytest.MonkeyPatch) -> LinkSpeed:
    """Of a processor that hashes 1,000 bytes a second."""
    ticks = iter(range(1_000))
    monkeypatch.setattr(link_speed, "perf_counter", lambda: float(next(ticks)))
    return LinkSpeed()


def test_what_is_named_is_a_copy(speed: LinkSpeed) -> None:
    content = bytearray(CONTENT)
    own, digest = speed.name(memoryview(content))
    content[0] = 1
    assert own == CONTENT
    assert digest == digest_of(CONTENT)


def test_an_unknown_link_is_slow(speed: LinkSpeed) -> None:
    assert speed.is_slow
    speed.note_sent(1000, 0.001)
    assert speed.is_slow  # how long hashing takes is not known either
    speed.name(CONTENT)
    assert not speed.is_slow


@pytest.mark.parametrize(("seconds", "is_slow"), [(0.5, False), (2.9, False), (3.1, True), (50.0, True)])
def test_it_is_slow_beside_the_hash(speed: LinkSpeed, seconds: float, is_slow: bool) -> None:
    speed.name(CONTENT)
    speed.note_sent(1000, seconds)
    assert speed.is_slow is is_slow


def test_it_is_as_it_was_seen_lately(speed: LinkSpeed) -> None:
    speed.name(CONTENT)
    speed.note_sent(1000, 100.0)
    for _ in range(6):
        assert speed.is_slow
        speed.note_sent(1000, 0.1)
    assert not speed.is_slow
    speed.note_sent(1000, 100.0)
    assert speed.is_slow


def test_hashing_is_as_fast_as_it_ever_was(speed: LinkSpeed, monkeypatch: pytest.MonkeyPatch) -> None:
    speed.name(CONTENT)
    times = iter((0.0, 70.0))
    monkeypatch.setattr(link_speed, "perf_counter", lambda: next(times))
    speed.name(CONTENT)
    assert speed.hashing_seconds == 71.0
    speed.note_sent(1000, 10.0)
    assert speed.is_slow
