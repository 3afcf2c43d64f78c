"""An executor with two devices: whose turn it is, what each arbiter hears, and up to where all is done."""

from __future__ import annotations

import os
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from gpu_backend.executor import lanes
from gpu_backend.executor.control_door import Gates
from gpu_backend.executor.conversation import Conversation
from gpu_backend.executor.lanes import Lane, Lanes
from gpu_backend.opstream.devices import default_stream
from gpu_backend.wire import messages as wire
from gpu_backend.wire.codec import encode
from gpu_backend.wire.messages import Op
from tests.unit.executor.gate_world import World, bell


class Scene:
    """Two devices, each with an arbiter, and a notebook that has asked for ops of these devices in turn."""

    def __init__(self, *devices: int) -> None:
        self.worlds = [World(), World()]
        self.lanes = Lanes([Lane(world.gate, world.pace) for world in self.worlds], lambda number: 100 * (number + 1))
        self.talk = Conversation(wire.Welcome(0, 1, 1_000, 1_000_000, 0, {}), "s")
        self.talk.receive(b"p", encode(wire.Hello("s", 1, "i", 1, 0, False)))
        ops = tuple(Op("cupy.add", 0, (), stream=default_stream(device)) for device in devices)
        if ops:
            self.talk.receive(b"p", encode(wire.Batch(1, 0, ops)))

    def run(self, ops: int, seconds: float = 0.0) -> None:
        """Launch so many ops on the current device, which take so long."""
        batch = self.talk.front()
        assert batch is not None
        pace = self.lanes.all[self.lanes.number].pace
        pace.begin(False)
        world = self.worlds[self.lanes.number]
        world.free_at = world.now_ns / 1e9 + seconds
        self.talk.advance(batch, batch.next + ops)
        pace.note_launches(ops, through=self.talk.applied)

    def pass_time(self, seconds: float) -> None:
        for world in self.worlds:
            world.now_ns += int(seconds * 1e9)

    def close(self) -> None:
        for world in self.worlds:
            world.close()


@pytest.fixture
def scene() -> Iterator[Scene]:
    made = Scene(0, 0, 1, 1, 1, 0)
    yield made
    made.close()


def test_the_device_of_the_next_op_is_turned_to(scene: Scene) -> None:
    turns = []
    while (batch := scene.talk.front()) is not None:
        turns.append(scene.lanes.turn(scene.talk))
        most = scene.lanes.most_ops(batch, 100)
        turns.append((scene.lanes.number, most))
        assert scene.lanes.most_ops(batch, 1) == 1
        scene.run(min(most, len(batch.ops) - batch.next))
        assert batch.next == len(batch.ops) or scene.lanes.is_for_another(batch)
    assert turns == [False, (0, 2), True, (1, 3), True, (0, 100)]


def test_the_arbiter_of_a_device_that_is_left_hears_that_nothing_waits(scene: Scene) -> None:
    first = scene.worlds[0]
    first.page.set_contended(True)
    first.gate.tell(6, True, 0)
    first.rings()
    assert first.report().queued_ops == 6
    scene.run(2)
    scene.pass_time(1.0)
    assert scene.lanes.turn(scene.talk)
    assert first.report().queued_ops == 0
    assert first.rings()


def test_all_is_done_up_to_the_first_that_flies_on_any_device(scene: Scene) -> None:
    assert scene.lanes.done_through(0) == 0
    scene.run(2, 1.0)
    scene.lanes.turn(scene.talk)
    scene.run(3, 5.0)
    scene.lanes.all[1].pace.close_group()
    assert scene.lanes.done_through(5) == 0
    scene.pass_time(6.0)
    scene.lanes.collect()
    assert scene.lanes.done_through(5) == 5
    assert scene.lanes.used_seconds == pytest.approx(6.0)
    assert sum(scene.lanes.used_by_class) == pytest.approx(scene.lanes.used_seconds)


def test_where_nothing_waits_who_works_is_looked_at() -> None:
    scene = Scene()
    try:
        assert not scene.lanes.turn(scene.talk)
        pace = scene.lanes.all[1].pace
        scene.worlds[1].free_at = 101.0
        pace.begin(False)
        pace.note_launches(1)
        pace.close_group()
        assert scene.lanes.turn(scene.talk)
        assert scene.lanes.number == 1
    finally:
        scene.close()


def test_an_op_for_a_device_that_is_none_stays_with_the_current_one() -> None:
    scene = Scene(7)
    try:
        assert not scene.lanes.turn(scene.talk)
        assert scene.lanes.number == 0
    finally:
        scene.close()


def test_memory_is_that_of_all(scene: Scene) -> None:
    assert scene.lanes.measure() == 300
    assert (scene.lanes.held_bytes, scene.lanes.peak_bytes) == ([100, 200], 300)


def test_an_arbiter_hands_over_the_gate_of_its_own_device(scene: Scene) -> None:
    heard: list[tuple[bool, int]] = []
    second, former = scene.worlds[1], scene.lanes.all[0].gate.line
    page, way = os.dup(second.page.descriptor), os.dup(second.way)
    scene.lanes.take_gate(Gates(page, way, bell(), 1), lambda bell, device: heard.append((bell is not None, device)))
    assert heard == [(False, 1), (True, 1)]
    assert scene.lanes.all[0].gate.line is former
    strange = [os.open(os.devnull, os.O_RDWR) for _ in range(3)]
    scene.lanes.take_gate(Gates(*strange, 5), lambda bell, device: heard.append((True, device)))
    assert len(heard) == 2
    for descriptor in strange:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(descriptor)


@pytest.mark.parametrize("is_shared", [False, True])
@pytest.mark.parametrize("has_spare", [False, True])
def test_launches_may_be_left_where_nobody_else_wants_device_or_processor(
    monkeypatch: pytest.MonkeyPatch, is_shared: bool, has_spare: bool
) -> None:
    waited: list[bool] = []
    launcher: Any = SimpleNamespace(may_leave=None, wait=lambda: waited.append(launcher.may_leave))
    monkeypatch.setattr(lanes, "has_spare", lambda: has_spare)
    say_alone = lanes._leaving(launcher, is_shared)
    say_alone(True)
    assert launcher.may_leave == (has_spare and not is_shared)
    assert not waited
    say_alone(False)
    assert waited == [False], "what is under way is with the driver, and nothing more is left"
    lanes._leaving(None, is_shared)(False)
