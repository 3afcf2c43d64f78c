"""An executor obeys the arbiter that came last, takes nothing that could be taken away, and waits for no spoiler."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from math import inf

import pytest

from gpu_backend.arbiter.events import OpenGate
from gpu_backend.executor.gate import Gate
from gpu_backend.gate import orders
from gpu_backend.gate.orders import OrderPage
from gpu_backend.gate.right_of_way import RightOfWay
from gpu_backend.transport.sealed import NotSealed
from tests.unit.executor.gate_world import SECOND, World, bell, world

__all__ = ["world"]


@pytest.fixture
def way(world: World) -> Iterator[RightOfWay]:
    """The device's right of way as another executor has it."""
    other = RightOfWay(world.way)
    other._me += 1
    yield other
    other.close()


def test_a_gate_is_shut_until_an_arbiter_comes_or_patience_ends(world: World) -> None:
    lonely = Gate(world.report_page, True, world.pace, lambda: world.now_ns)
    assert not lonely.may_launch()
    world.now_ns += SECOND
    assert not lonely.may_launch()
    world.now_ns += 1
    assert lonely.may_launch()
    world.page.shut(world.now_ns)
    lonely.take(os.dup(world.page.descriptor), os.dup(world.way), bell())
    assert not lonely.may_launch()
    lonely.close()


def test_another_arbiter_is_obeyed_and_the_one_before_it_no_more(world: World) -> None:
    former = OrderPage()
    world.gate.take(os.dup(former.descriptor), os.dup(world.way), bell())
    former.open(OpenGate("s", inf, 0, inf, 1.0), world.now_ns)
    assert world.gate.may_launch()
    world.replace_arbiter()
    assert not world.gate.may_launch()  # shut until the new one is heard
    world.open()
    assert world.gate.may_launch()
    former.shut(world.now_ns)
    assert world.gate.may_launch()
    world.page.set_contended(True)
    world.gate.tell(3, False, 0)
    assert world.rings()
    former.close()


def test_what_an_arbiter_says_again_is_heard_though_nothing_told_of_it(world: World) -> None:
    """A gate that was read as shut is not taken for shut for ever."""
    world.page.shut(world.now_ns)
    assert not world.gate.may_launch()
    state = world.page._page.words[orders.STATE]
    world.open()
    world.page._page.words[orders.STATE] = state  # as if it had been lost
    assert not world.gate.may_launch()
    world.pass_time(0.1)
    assert world.gate.may_launch()


def test_pages_that_could_be_taken_away_are_not_taken(world: World) -> None:
    world.open()
    gc.collect()  # what other tests have left closes its descriptors now, and not meanwhile
    before = set(os.listdir("/proc/self/fd"))
    for place in range(2):
        given = [os.dup(world.page.descriptor), os.dup(world.way), bell()]
        os.close(given[place])
        given[place] = os.memfd_create("page", os.MFD_ALLOW_SEALING)
        os.ftruncate(given[place], 128 if place == 0 else 16)
        with pytest.raises(NotSealed):
            world.gate.take(*given)
    assert set(os.listdir("/proc/self/fd")) == before
    assert world.gate.may_launch()


@pytest.mark.parametrize("word", [2**63 - 1, -1, None])
def test_whoever_spoils_the_right_of_way_holds_nobody_up_for_long(
    world: World, way: RightOfWay, word: int | None
) -> None:
    world.open()
    launched, turns = 0, 10_000
    for _ in range(turns):
        way.words[0] = world.now_ns + 4_000_000 if word is None else word
        launched += world.gate.may_launch()
        world.pass_time(0.0001)
    assert launched > 0.88 * turns


def test_what_runs_is_said_before_it_is_launched(world: World) -> None:
    assert not world.reports.is_computing
    world.gate.note_launch()
    assert world.reports.is_computing
    world.launch(0.001)
    world.pace.close_group()
    world.gate.note_return()
    assert world.reports.is_computing  # it is on the device now
    world.pass_time(0.002)
    world.pace.collect()
    world.gate.tell(0, False, 0, is_resting=True)
    assert not world.reports.is_computing
