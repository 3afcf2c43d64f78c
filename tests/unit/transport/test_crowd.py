"""Who goes where too many wait at a door."""

from __future__ import annotations

import pytest

from gpu_backend.transport.crowd import in_the_way


@pytest.mark.parametrize(
    ("waiting", "newcomer", "gone"),
    [
        ([], "a", None),
        (["a", "a"], "b", None),
        (["b", "a", "a", "a"], "a", 1),  # one's own, the eldest of them
        (["b", "a", "a", "a"], "b", None),
        (["b", "c", "a", "d", "a"], "e", 2),  # all places are taken: one of the largest crowd
        (["b", "c", "a", "d", "e"], "f", 0),
    ],
)
def test_the_eldest_of_a_crowd_goes_for_others(waiting: list[str], newcomer: str, gone: int | None) -> None:
    assert in_the_way(waiting, newcomer, most=5, most_of_one=3) == gone
