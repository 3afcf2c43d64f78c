"""The right of way is had by one at a time, and ends by itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gpu_backend.arbiter import right_of_way
from gpu_backend.arbiter.right_of_way import RightOfWay


@pytest.fixture
def two(tmp_path: Path) -> Iterator[tuple[RightOfWay, RightOfWay]]:
    made = RightOfWay(tmp_path / "way"), RightOfWay(tmp_path / "way")
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


def test_the_file_is_its_owners_alone(tmp_path: Path) -> None:
    RightOfWay(tmp_path / "way").close()
    assert (tmp_path / "way").stat().st_mode & 0o777 == 0o600
