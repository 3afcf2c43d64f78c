"""The right of way is had by one at a time, ends by itself, and costs its readers a tenth, whatever it says."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from random import Random

import pytest

from gpu_backend.gate import right_of_way
from gpu_backend.gate.right_of_way import Patience, RightOfWay

SECOND = 1_000_000_000
LOOK = 5_000


@pytest.fixture
def two() -> Iterator[tuple[RightOfWay, RightOfWay]]:
    descriptor = right_of_way.make()
    made = RightOfWay(descriptor), RightOfWay(descriptor)
    os.close(descriptor)
    made[1]._me += 1  # as if it were another process
    yield made
    for one in made:
        one.close()


def test_it_is_seen_by_others_until_it_is_given_back(two: tuple[RightOfWay, RightOfWay]) -> None:
    one, other = two
    assert other.words[0] == 0
    one.take(1_000)
    assert other.words[0] == 1_000 + right_of_way.SECONDS * 1e9
    one.give_back()
    assert other.words[0] == 0


def test_who_took_it_last_has_it(two: tuple[RightOfWay, RightOfWay]) -> None:
    one, other = two
    one.take(1_000)
    other.take(2_000)
    one.give_back()
    assert one.words[0] == 2_000 + right_of_way.SECONDS * 1e9
    other.give_back()
    assert one.words[0] == 0


def waited(word: Callable[[int], int], sleep: int = LOOK, seconds: float = 5.0) -> float:
    """Return the part of its time that a reader spends waiting; while it waits, it looks again after ``sleep``."""
    patience, now, spent = Patience(), SECOND, 0
    end = now + int(seconds * SECOND)
    while now < end:
        written = word(now)
        is_waiting = bool(written) and patience.holds(written, now)
        spent += sleep if is_waiting else 0
        now += sleep if is_waiting else LOOK
        if is_waiting:
            patience.rest(now)
    return spent / (end - SECOND)


random = Random(1)
SPOILERS: dict[str, Callable[[int], int]] = {
    "for ever": lambda now: 2**63 - 1,
    "anew at each look": lambda now: now + 5_000_000,
    "for ever, anew at each look": lambda now: 2**63 - 1 - now,
    "anew whenever it has passed": lambda now: (now // 5_000_000 + 1) * 5_000_000,
    "now and then": lambda now: now + 5_000_000 if now // 1_000_000 % 3 else 0,
    "at random": lambda now: random.randrange(-(2**63), 2**63),
    "the past": lambda now: 1,
}


@pytest.mark.parametrize("sleep", [LOOK, 300_000, 1_000_000])
@pytest.mark.parametrize("name", SPOILERS)
def test_whoever_spoils_it_costs_others_little(name: str, sleep: int) -> None:
    assert waited(SPOILERS[name], sleep) <= (0.12 if sleep <= 300_000 else 0.15)


def test_short_ops_are_waited_for_to_their_ends() -> None:
    """As six people's, each with fifty a second of 0.3 ms."""

    def word(now: int) -> int:
        number, at = divmod(now, SECOND // 300)
        return (number * SECOND // 300 + 5_000_000) if at < 300_000 else 0

    assert waited(word) == pytest.approx(300 * 0.0003, rel=0.1)
