"""An executor obeys its page: end, budget, duty, window; and tells its arbiter what decides who is next."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gpu_backend.arbiter.events import OpenLane
from gpu_backend.executor.gate import Gate
from gpu_backend.gate.reports import GateReport
from gpu_backend.gate.right_of_way import SECONDS as WAY_SECONDS
from gpu_backend.gate.right_of_way import RightOfWay
from tests.unit.executor.gate_world import SECOND, World, world

__all__ = ["world"]


def test_where_no_arbiter_comes_the_gate_opens_when_patience_ends(world: World) -> None:
    assert not world.gate.may_launch()
    world.now_ns += SECOND
    assert not world.gate.may_launch()
    world.now_ns += 1
    assert world.gate.may_launch()


def test_a_device_without_an_arbiter_has_no_gate(world: World) -> None:
    free = Gate(world.report_page, False, world.pace, lambda: world.now_ns)
    assert free.may_launch()
    free.close()


def test_who_is_told_by_no_arbiter_does_not_know_that_it_is_alone(world: World) -> None:
    assert not Gate(world.report_page, True, world.pace, lambda: world.now_ns).has_device_alone
    for is_contended in (False, True, False):
        world.page.set_contended(is_contended)
        assert world.gate.has_device_alone != is_contended


def test_it_is_open_until_the_end_and_not_while_shut(world: World) -> None:
    world.open(seconds=0.02)
    assert world.gate.may_launch()
    world.pass_time(0.03)
    assert not world.gate.may_launch()
    world.open()
    assert world.gate.may_launch()
    world.page.shut(world.now_ns)
    assert not world.gate.may_launch()


@pytest.mark.parametrize("bounds", [{}, {"budget": 0.001}, {"duty": 0.01}, {"seconds": 0.001}])
def test_a_dead_arbiters_gate_opens_whatever_it_said_last(world: World, bounds: dict[str, float]) -> None:
    world.open(**bounds)  # type: ignore[arg-type]
    if not bounds:
        world.page.shut(world.now_ns)
    world.work(0.01)
    assert not world.gate.may_launch()
    world.now_ns += 2 * SECOND
    assert world.gate.may_launch()


def test_a_budget_is_spent_and_given_anew(world: World) -> None:
    world.open(budget=0.003)
    assert [world.work(0.001) for _ in range(4)] == [True, True, True, False]
    world.pass_time(0.1)
    assert not world.gate.may_launch()
    world.open(budget=0.003)
    assert world.work(0.001)
    world.open(budget=0.0)
    assert not world.gate.may_launch()


def test_a_budget_counts_what_is_in_flight(world: World) -> None:
    world.open()
    for _ in range(20):
        world.work(0.001)  # its length is known now
    world.open(budget=0.0035)
    launched = 0
    while world.gate.may_launch() and launched < 10:
        world.launch(0.001)
        launched += 1
    assert launched == 4


def test_duty_leaves_pauses_in_proportion(world: World) -> None:
    world.open(duty=0.25)
    start, busy = world.now_ns, 0
    while world.now_ns < start + SECOND:
        if world.work(0.001):
            busy += 1_000_000
        else:
            world.pass_time(0.0001)
    assert busy / (world.now_ns - start) == pytest.approx(0.25, abs=0.02)


def test_it_says_how_long_a_pause_still_lasts(world: World) -> None:
    assert world.gate.pause_seconds == 0
    world.open(duty=0.25)
    for _ in range(20):
        while not world.work(0.0002):
            world.pass_time(world.gate.pause_seconds)
    assert not world.gate.may_launch()
    assert world.gate.pause_seconds == pytest.approx(0.0006, rel=0.01)
    world.pass_time(0.0004)
    assert world.gate.pause_seconds == pytest.approx(0.0002, rel=0.01)
    world.pass_time(0.0002)
    assert world.gate.may_launch()
    world.launch(0.0002)
    assert not world.gate.may_launch()
    assert world.gate.pause_seconds == pytest.approx(0.0002, rel=0.1)  # what runs is not done before


def test_a_long_op_is_not_begun_at_the_last_moment(world: World) -> None:
    for _ in range(20):
        world.work(0.1)
    world.open(seconds=0.25)
    assert [world.work(0.1) for _ in range(3)] == [True, True, True]
    world.open(seconds=0.2001)
    assert [world.work(0.1) for _ in range(3)] == [True, True, False]
    world.pass_time(0.02)
    world.open(seconds=0.02)
    assert world.work(0.1)  # else it would never run


def test_a_window_bounds_what_is_in_flight(world: World) -> None:
    world.open(window=2)
    assert world.gate.may_launch()
    launched = 0
    while not world.pace.is_full() and launched < 100:
        world.launch(1e-6)
        launched += 1
    assert launched == 2


def test_where_others_wait_little_is_kept_in_flight(world: World) -> None:
    world.open()
    for _ in range(20):
        world.work(1e-4)
    counts = {}
    for is_contended in (False, True):
        world.page.set_contended(is_contended)
        world.gate.may_launch()
        counts[is_contended] = 0
        while not world.pace.is_full():
            world.launch(1e-4)
            counts[is_contended] += 1
        world.pass_time(1.0)
    assert counts[True] in (3, 4)
    assert 30 <= counts[False] <= 45


def test_it_rings_when_it_begins_or_ceases_to_wait_and_only_where_others_want_the_device(world: World) -> None:
    world.open()
    world.gate.tell(5, False, 7)
    assert not world.rings()
    world.page.set_contended(True)
    world.gate.tell(0, False, 7)
    assert world.rings()
    world.gate.tell(0, False, 7)
    assert not world.rings()
    world.gate.tell(3, False, 7)
    assert world.rings()
    report = world.report()
    assert (report.queued_ops, report.memory_bytes, report.is_urgent) == (3, 7, False)
    world.gate.tell(3, True, 7)
    assert world.rings()
    assert world.report() == GateReport(0, 0, 3, 0, True, 7)


def test_what_is_long_is_not_urgent_though_somebody_waits(world: World) -> None:
    world.open()
    for _ in range(20):
        world.work(0.01)
    world.gate.tell(2, True, 0, is_resting=True)
    report = world.report()
    assert not report.is_urgent


def test_use_is_told_in_time(world: World) -> None:
    """Alone, without a ring: at least every few milliseconds, and before it rests."""
    world.open()
    world.work(0.001)
    world.gate.tell(5, False, 0)
    first = world.report()
    world.work(0.001)
    world.gate.tell(5, False, 0)
    assert world.report() == first
    world.pass_time(0.005)
    world.gate.tell(5, False, 0)
    second = world.report()
    assert second.used_ns == pytest.approx(2_000_000, rel=0.01)
    world.work(0.001)
    world.gate.tell(5, False, 0, is_resting=True)
    third = world.report()
    assert third.ops_done == 3


# --- passing by the right of way --------------------------------------------------------------------------------------


@pytest.fixture
def way(world: World) -> Iterator[RightOfWay]:
    """The device's right of way as another executor has it."""
    other = RightOfWay(world.way)
    other._me += 1
    yield other
    other.close()


def open_lane(world: World, budget: float = 0.01) -> None:
    if not world.pace.ops_done:
        world.open()
        for _ in range(25):  # it is known what its ops take
            world.work(0.0001)
    world.gate.tell(0, False, 0)
    world.page.set_contended(True)
    world.page.taken_ns = int(world.pace.used_seconds * 1e9)
    world.page.open_lane(OpenLane("s", budget), world.now_ns)


def test_a_short_op_that_somebody_waits_for_passes_without_a_ring(world: World, way: RightOfWay) -> None:
    open_lane(world)
    assert not world.gate.may_launch()
    world.gate.tell(2, True, 0)
    assert world.gate.may_launch()
    assert way.words[0] == world.now_ns + WAY_SECONDS * 1e9
    report = world.report()  # should it last, whoever looks sees it
    assert report.queued_ops == 2
    assert report.is_urgent
    world.work(0.0001)
    world.gate.tell(0, False, 0)
    assert way.words[0] == 0
    assert not world.gate.may_launch()
    assert not world.rings()


@pytest.mark.parametrize(("queued", "is_awaited"), [(2, False), (100, True)])
def test_what_is_long_or_not_waited_for_asks(world: World, way: RightOfWay, queued: int, is_awaited: bool) -> None:
    open_lane(world)
    world.gate.tell(queued, is_awaited, 0)
    assert not world.gate.may_launch()
    assert not way.words[0]
    assert world.rings()


def test_whose_ops_are_not_known_or_were_long_of_late_asks(world: World, way: RightOfWay) -> None:
    world.page.set_contended(True)
    world.page.open_lane(OpenLane("s", 0.01), world.now_ns)
    world.gate.tell(1, True, 0)
    assert not world.gate.may_launch()
    world.gate.tell(0, False, 0)
    open_lane(world)
    world.gate.tell(1, True, 0)
    assert world.gate.may_launch()
    world.work(0.1)
    world.gate.tell(0, False, 0)
    world.open()
    for _ in range(10):  # the mean is short again
        world.work(0.0001)
    assert world.pace.op_seconds < 0.0003
    open_lane(world)
    world.gate.tell(1, True, 0)
    assert not world.gate.may_launch()


def test_what_turns_out_long_gives_the_way_back_and_asks(world: World, way: RightOfWay) -> None:
    open_lane(world)
    world.gate.tell(2, True, 0)
    world.gate.tell(100, True, 0)
    assert not way.words[0]
    assert not world.gate.may_launch()
    assert world.rings()


def test_a_lanes_budget_is_spent_and_given_anew(world: World) -> None:
    open_lane(world, budget=0.0003)
    passed = []
    for _ in range(4):
        world.gate.tell(1, True, 0)
        passed.append(world.work(0.0002))
        world.gate.tell(0, False, 0)
    assert passed == [True, True, False, False]
    assert world.rings()
    open_lane(world, budget=0.0003)
    world.gate.tell(1, True, 0)
    assert world.gate.may_launch()


def test_whoever_holds_a_turn_yields_to_a_short_op_and_not_for_long(world: World, way: RightOfWay) -> None:
    world.open()
    assert world.gate.may_launch()
    way.take(world.now_ns)
    assert not world.gate.may_launch()
    assert world.gate.is_yielding
    way.give_back()
    assert world.gate.may_launch()
    way.take(world.now_ns)
    world.pass_time(WAY_SECONDS)  # who has it died
    assert world.gate.may_launch()
    assert not world.gate.is_yielding


def test_two_may_pass_at_once(world: World, way: RightOfWay) -> None:
    open_lane(world)
    world.gate.tell(1, True, 0)
    way.take(world.now_ns)
    assert world.gate.may_launch()
    way.give_back()
    assert world.gate.may_launch()


def test_an_arbiter_that_looked_meanwhile_hears_of_the_end(world: World) -> None:
    open_lane(world)
    world.gate.tell(1, True, 0)
    world.open(seconds=0.02)  # it saw that somebody waits
    assert world.gate.may_launch()
    world.work(0.0001)
    world.gate.tell(0, False, 0)
    assert world.rings()


def test_short_ops_go_on_behind_an_openings_end_until_the_gate_is_shut(world: World) -> None:
    """The arbiter is late by a wake-up, and the next executor by another; the device is not to be idle meanwhile."""
    world.open(seconds=0.02)
    world.pass_time(0.0201)
    assert world.gate.may_launch()
    world.page.shut(world.now_ns)
    assert not world.gate.may_launch()
    world.open(seconds=0.02)
    world.pass_time(0.021)
    assert not world.gate.may_launch()
