"""What policies remember of use."""

from __future__ import annotations

import pytest

from gpu_backend.arbiter.policies._usage import DecayedUsage


def test_use_halves_and_its_order_stays_however_long_it_is_kept() -> None:
    usage = DecayedUsage(60.0)
    usage.charge("a", 8.0, 1.0, 0.0)
    usage.charge("b", 4.0, 2.0, 0.0)
    assert usage.of("a", 60.0) == pytest.approx(4.0)
    assert usage.lead("a", "b", 120.0) == pytest.approx(1.5)
    for day in range(1, 8):  # thousands of half-lives: far beyond what a float holds
        now = day * 86_400.0
        usage.charge("a", 1.0, 1.0, now)
        usage.charge("b", 3.0, 1.0, now)
        assert usage.ranks["b"] > usage.ranks["a"]
        assert usage.of("b", now) == pytest.approx(3.0)
        assert usage.of("b", now + 60.0) == pytest.approx(1.5)


def test_nobody_who_comes_leads_by_more_than_the_credit() -> None:
    usage = DecayedUsage(60.0)
    usage.charge("busy", 10.0, 1.0, 0.0)
    usage.admit(["new"], ["busy"], 0.5, 60.0)
    assert usage.lead("busy", "new", 60.0) == pytest.approx(0.5)
    usage.admit(["later"], [], 0.5, 120.0)  # nobody is active: the last level, decayed, holds
    assert usage.of("later", 120.0) == pytest.approx(2.0)
