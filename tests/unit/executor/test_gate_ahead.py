"""What is said a moment ahead: when a gate will open, or shut."""

from __future__ import annotations

from math import inf

import pytest

from gpu_backend.arbiter.events import OpenGate
from tests.unit.executor.gate_world import World, world

__all__ = ["world"]


def test_an_opening_that_is_to_come_begins_in_its_moment_and_not_before(world: World) -> None:
    at_ns = world.now_ns + 400_000
    world.page.open(OpenGate("s", (at_ns + 20_000_000) / 1e9, 0, inf, 1.0), world.now_ns, from_ns=at_ns)
    assert not world.gate.may_launch()
    assert world.gate.opens_in == pytest.approx(0.4e-3)
    world.now_ns = at_ns - 1
    assert not world.gate.may_launch()
    world.now_ns = at_ns
    assert world.gate.may_launch()
    assert world.gate.opens_in == 0
    world.now_ns = at_ns + 20_000_000 + 400_000
    assert not world.gate.may_launch()


def test_an_opening_that_was_to_come_and_does_not_never_begins(world: World) -> None:
    at_ns = world.now_ns + 400_000
    world.page.open(OpenGate("s", at_ns / 1e9 + 0.02, 0, inf, 1.0), world.now_ns, from_ns=at_ns)
    assert not world.gate.may_launch()
    world.page.shut(world.now_ns)
    world.now_ns = at_ns
    assert not world.gate.may_launch()


def test_behind_an_end_that_was_said_ahead_nothing_goes_on(world: World) -> None:
    world.open(seconds=0.02)
    assert world.gate.may_launch()
    world.page.shut(world.now_ns, at_ns=world.now_ns + 10_000_000)
    assert world.gate.may_launch()
    world.now_ns += 9_750_000 - 1
    assert world.gate.may_launch()
    world.now_ns += 1  # what is in flight takes until the end
    assert not world.gate.may_launch()


def test_that_a_turn_will_end_lets_no_long_op_through_that_would_not(world: World) -> None:
    """An opening's first op passes whatever is in flight; this is the same opening."""
    world.open()
    for _ in range(20):
        world.work(4e-3)
    world.open(seconds=3.6e-3)
    assert world.gate.may_launch()
    world.launch(4e-3)
    world.now_ns += 3_000_000
    assert not world.gate.may_launch()
    world.page.shut(world.now_ns, at_ns=world.now_ns + 600_000)
    assert not world.gate.may_launch()


def test_that_a_turn_will_end_ends_no_pause(world: World) -> None:
    world.open()
    for _ in range(20):
        world.work(1e-4)
    world.open(seconds=0.02, duty=0.1)
    assert world.work(1e-4)
    assert not world.gate.may_launch()
    world.page.shut(world.now_ns, at_ns=world.now_ns + 600_000)
    assert not world.gate.may_launch()
