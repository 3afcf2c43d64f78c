"""Rates of what is on the books: parts of time, smoothed, and right where something is known only later."""

from __future__ import annotations

import numpy as np
import pytest

from gpu_backend.gateway.lately import Lately


def after(*unused: float) -> Lately:
    """Return the rates of one session in whose seconds so much of its device was wanted and unused."""
    lately, sums = Lately(np.array([[0.0, 0.0, 0.0, 100.0]])), np.cumsum(unused)
    for second, there in enumerate(sums.tolist(), 1):
        lately.take(np.array([[0.5 * second, 1.0 * second, there, 100.0 + second]]))
    return lately


def test_it_is_what_was_used_wanted_and_unused_of_a_second() -> None:
    lately = after(*[0.25] * 20)
    assert [lately.used[0], lately.wanted[0], lately.unused[0]] == pytest.approx([0.5, 1.0, 0.25], abs=1e-4)


def test_what_seemed_unused_and_was_used_by_an_op_of_seconds_is_taken_off_again() -> None:
    courses = [after(*[1.0, 1.0, 1.0, -3.0] * times) for times in (5, 6, 7)]
    assert [one.unused[0] for one in courses] == [0.0] * 3


def test_of_a_newcomer_one_second_says_little_of_the_device() -> None:
    assert after(1.0).used[0] == 0.5  # what it used itself is believed at once
    assert 0.0 < after(1.0).unused[0] < 0.6
