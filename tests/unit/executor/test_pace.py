"""How much work the device has under way, and what it took."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from gpu_backend.executor.pace import Pace
from gpu_backend.wire.op_classes import OP_CLASSES, OpClass


@dataclass
class Queue:
    """A device that works off what it is given, one op after the other, while the test lets time pass."""

    op_seconds: float = 20e-6
    now: float = 0.0
    free_at: float = 0.0
    markers: int = 0
    log: list[float] = field(default_factory=list)

    def clock(self) -> float:
        return self.now

    def marker(self) -> Mark:
        self.markers += 1
        return Mark(self, max(self.now, self.free_at))

    def launch(self, ops: int) -> None:
        self.free_at = max(self.now, self.free_at) + ops * self.op_seconds


@dataclass
class Mark:
    queue: Queue
    at: float

    def is_done(self) -> bool:
        return self.queue.now >= self.at

    def seconds_since(self, earlier: Mark) -> float:
        return self.at - earlier.at


def fill(pace: Pace, queue: Queue, ops: int = 10**9) -> int:
    """Launch until the device has all the work it may have, and return how much that was."""
    launched = 0
    while launched < ops and not pace.is_full():
        pace.begin(False)
        run = min(pace.run_ops, ops - launched)
        queue.launch(run)
        pace.note_launches(run)
        launched += run
    return launched


def settle(pace: Pace, queue: Queue) -> None:
    """Let the device and the pace come to an even flow."""
    for _ in range(50):
        fill(pace, queue)
        queue.now = queue.free_at
    pace.collect()


@pytest.fixture
def queue() -> Queue:
    return Queue()


@pytest.fixture
def pace(queue: Queue) -> Pace:
    return Pace(queue.marker, queue.clock)


def test_a_device_that_keeps_up_is_never_full_and_hardly_asked(pace: Pace, queue: Queue) -> None:
    queue.op_seconds = 0.0
    assert fill(pace, queue, 10_000) == 10_000
    assert queue.markers < 400


@pytest.mark.parametrize("op_seconds", [5e-6, 20e-6, 2e-4, 2e-3, 0.1])
@pytest.mark.parametrize("is_contended", [False, True])
def test_what_is_in_flight_is_short_in_time(pace: Pace, queue: Queue, op_seconds: float, is_contended: bool) -> None:
    queue.op_seconds = op_seconds
    pace.bound(is_contended, 0)
    settle(pace, queue)
    seconds = fill(pace, queue) * op_seconds
    window = 0.3e-3 if is_contended else 4e-3
    least = 1 if is_contended and op_seconds > 5e-3 else 2
    assert min(window, least * op_seconds) * 0.9 <= seconds <= max(1.5 * window, least * op_seconds) + 1e-9


def test_a_surprise_is_bounded(pace: Pace, queue: Queue) -> None:
    """Ops become a thousand times longer at once: what was launched before anybody knew is a few hundred."""
    queue.op_seconds = 1e-6
    settle(pace, queue)
    queue.op_seconds = 1e-3
    assert fill(pace, queue) <= 2048


def flow(pace: Pace, queue: Queue, seconds: float) -> tuple[int, float, float]:
    """Launch for so long whenever there is room; return how many, the longest queue, and how long nothing ran."""
    ops, longest, idle, until = 0, 0.0, 0.0, queue.now + seconds
    while queue.now < until:
        if pace.is_full():
            queue.now += 1e-6
            continue
        pace.begin(False)
        idle += max(0.0, queue.now - queue.free_at)
        queue.launch(pace.run_ops)
        pace.note_launches(pace.run_ops)
        ops += pace.run_ops
        longest = max(longest, queue.free_at - queue.now)
        queue.now += 5e-6
    return ops, longest, idle


@pytest.mark.parametrize("op_seconds", [1e-4, 2e-4, 2.9e-4])
def test_steady_ops_beside_others_need_few_markers(pace: Pace, queue: Queue, op_seconds: float) -> None:
    queue.op_seconds = op_seconds
    pace.bound(True, 0)
    flow(pace, queue, 0.05)
    queue.markers = 0
    ops, longest, idle = flow(pace, queue, 0.05)
    assert queue.markers <= ops / 3 + 1
    assert longest <= max(0.45e-3, 0.3e-3 + op_seconds)
    assert idle < 0.01 * 0.05


@pytest.mark.parametrize("part", [0.6, 1.4])
def test_who_is_slower_or_faster_than_it_was_has_no_more_under_way_and_no_less(
    pace: Pace, queue: Queue, part: float
) -> None:
    queue.op_seconds = 2e-4
    pace.bound(True, 0)
    flow(pace, queue, 0.05)
    queue.op_seconds *= part
    flow(pace, queue, 0.002)
    _, longest, idle = flow(pace, queue, 0.02)
    assert longest <= 0.3e-3 + 2 * queue.op_seconds
    assert idle < 0.01 * 0.02


def test_ops_of_which_some_are_long_have_a_marker_each(pace: Pace, queue: Queue) -> None:
    pace.bound(True, 0)
    for _ in range(60):
        for queue.op_seconds in (1e-4, 3e-4):
            pace.begin(False)
            queue.launch(1)
            pace.note_launches(1)
            pace.close_group()
            queue.now = queue.free_at
            pace.collect()
    queue.markers = 0
    ops, _, _ = flow(pace, queue, 0.0005)
    assert queue.markers >= ops


def test_a_surprise_in_a_steady_flow_is_bounded(pace: Pace, queue: Queue) -> None:
    queue.op_seconds = 2e-4
    pace.bound(True, 0)
    flow(pace, queue, 0.05)
    queue.op_seconds = 0.1
    launched, _, _ = flow(pace, queue, 0.01)
    assert launched <= 6


def test_a_window_in_ops_is_kept(pace: Pace, queue: Queue) -> None:
    pace.bound(True, 2)
    settle(pace, queue)
    assert fill(pace, queue) == 2


def test_the_devices_time_is_counted_once(pace: Pace, queue: Queue) -> None:
    """Also where groups follow each other without a gap, and where the device waited for the host."""
    ops = 0
    for round_ in range(40):
        ops += fill(pace, queue, 7 + round_)
        pace.close_group()  # nothing more waits
        queue.now = queue.free_at + (1e-3 if round_ % 3 else 0.0) - (1e-5 if round_ % 5 else 0.0)
    queue.now = queue.free_at
    pace.collect()
    assert pace.used_seconds == pytest.approx(ops * queue.op_seconds, rel=0.02)
    assert pace.ops_done == ops
    assert pace.in_flight_ops == 0


@pytest.mark.parametrize("ops", [1, 3])
def test_a_few_ops_that_are_awaited_cost_no_marker(pace: Pace, queue: Queue, ops: int) -> None:
    pace.begin(True)
    queue.launch(ops)
    queue.now = queue.free_at
    pace.note_launches(ops, is_awaited=True, is_done=True)
    assert queue.markers == 0
    assert pace.used_seconds == pytest.approx(ops * 20e-6)
    assert pace.in_flight_ops == 0


@pytest.mark.parametrize("is_awaited", [False, True])
def test_what_was_to_be_awaited_and_is_not_done_is_counted_when_it_is(
    pace: Pace, queue: Queue, is_awaited: bool
) -> None:
    """As where one of the ops failed, or its time was over: the device works on those before it."""
    pace.begin(True)
    queue.launch(3)
    pace.note_launches(3, is_awaited, through=3)
    assert (queue.markers, pace.in_flight_ops, pace.used_seconds, pace.done_through) == (1, 3, 0.0, 0)
    queue.now = queue.free_at
    pace.collect()
    assert pace.used_seconds == pytest.approx(60e-6)
    assert (pace.in_flight_ops, pace.done_through) == (0, 3)
    pace.begin(True)
    queue.launch(1)
    queue.now = queue.free_at
    pace.note_launches(1, is_awaited=True, is_done=True)
    assert pace.used_seconds == pytest.approx(80e-6), "nothing is counted twice"


def test_an_awaited_op_behind_others_closes_their_group(pace: Pace, queue: Queue) -> None:
    pace.begin(False)
    queue.launch(3)
    queue.now = queue.free_at
    pace.note_launches(3, is_awaited=True)
    pace.collect()
    assert pace.in_flight_ops == 0
    assert pace.used_seconds == pytest.approx(60e-6)


def launch(pace: Pace, queue: Queue, *kinds: tuple[OpClass, int, float]) -> None:
    """Launch one group: so many ops of each class, of that length."""
    pace.begin(False)
    for kind, ops, seconds in kinds:
        queue.free_at = max(queue.now, queue.free_at) + ops * seconds
        pace.counts[OP_CLASSES.index(kind)] += ops
        pace.note_launches(ops)
    pace.close_group()
    queue.now = queue.free_at
    pace.collect()


def by_class(pace: Pace) -> dict[OpClass, float]:
    return {kind: used for kind, used in zip(OP_CLASSES, pace.used_by_class, strict=True) if used}


def test_time_is_told_apart_by_class_and_nothing_of_it_is_lost(pace: Pace, queue: Queue) -> None:
    launch(pace, queue, (OpClass.LINALG, 1, 5e-3))
    launch(pace, queue, (OpClass.ELEMENTWISE, 1, 1e-4))
    assert by_class(pace) == pytest.approx({OpClass.LINALG: 5e-3, OpClass.ELEMENTWISE: 1e-4})
    pace.begin(True)
    queue.now += 2e-3  # an op that nobody has counted
    pace.note_launches(1, is_awaited=True, is_done=True)
    assert by_class(pace)[OpClass.OTHER] == pytest.approx(2e-3)
    assert sum(pace.used_by_class) == pytest.approx(pace.used_seconds)


def test_a_group_of_several_classes_is_split_by_what_each_takes_alone(pace: Pace, queue: Queue) -> None:
    for _ in range(20):
        launch(pace, queue, (OpClass.LINALG, 1, 4e-4))
        launch(pace, queue, (OpClass.ELEMENTWISE, 2, 1e-5))
    before = by_class(pace)
    pace.bound(False, 512)  # so that all of it is one group
    launch(pace, queue, (OpClass.LINALG, 1, 4e-4), (OpClass.ELEMENTWISE, 10, 1e-5))
    after = by_class(pace)
    assert after[OpClass.LINALG] - before[OpClass.LINALG] == pytest.approx(4e-4, rel=0.05)
    assert after[OpClass.ELEMENTWISE] - before[OpClass.ELEMENTWISE] == pytest.approx(1e-4, rel=0.05)


def test_what_the_device_has_no_part_in_says_nothing_of_ops_to_come(pace: Pace, queue: Queue) -> None:
    settle(pace, queue)
    before, used = (pace.op_seconds, pace.longest_seconds, pace.run_ops), pace.used_seconds
    for is_done in (True, False):  # or is timed once it is
        pace.begin(True)
        queue.now += 5e-3
        pace.note_launches(1, is_awaited=True, is_done=is_done, is_question=True)
        pace.collect()
    assert (pace.op_seconds, pace.longest_seconds, pace.run_ops) == before
    assert pace.used_seconds == pytest.approx(used + 10e-3)
    pace.begin(False)
    queue.launch(1)
    pace.note_launches(1)
    pace.begin(True)
    queue.now += 5e-3
    pace.note_launches(1, is_awaited=True, is_question=True)
    pace.collect()
    assert pace.op_seconds > before[0], "one of the two was for the device"


def test_how_far_the_device_is_is_known_by_its_markers(pace: Pace, queue: Queue) -> None:
    queue.op_seconds = 1e-3
    for number in (1, 2, 3):
        pace.begin(False)
        queue.launch(1)
        pace.note_launches(1, through=number)
        pace.close_group()
    pace.collect()
    assert pace.done_through == 0
    queue.now = 2.5e-3
    pace.collect()
    assert pace.done_through == 2
    queue.now = queue.free_at
    pace.collect()
    assert pace.done_through == 3


def test_it_is_said_before_each_group_and_at_once_whether_others_want_the_device(queue: Queue) -> None:
    said: list[bool] = []
    pace = Pace(queue.marker, queue.clock, said.append)
    pace.begin(False)
    pace.begin(False)
    assert said == [True], "the group goes on"
    pace.bound(True, 0)
    assert said == [True, False]
    pace.note_launches(1)
    pace.close_group()
    pace.begin(False)
    assert said == [True, False, False]
    pace.bound(False, 0)
    pace.note_launches(1)
    pace.close_group()
    pace.begin(False)
    assert said[-1]
