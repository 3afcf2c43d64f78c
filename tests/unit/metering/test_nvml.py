"""What the driver says of who uses a GPU: what its samples count for, of when they are, and where there are none."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from time import monotonic_ns, time
from typing import cast

import pytest

from gpu_backend.metering.meters import meter_of
from gpu_backend.metering.nvml import Nvml, NvmlMeter
from gpu_backend.metering.watch import Watch

SECOND_NS = 1_000_000_000


def test_an_instance_of_a_gpu_is_used_unseen_and_that_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        meter = meter_of("cuda", "MIG-5e0a9a2f-0d8e-5b2c-9f1d-2b7c5a1f4e30")
        assert [meter.seen(os.getpid()) for _ in range(3)] == [None, None, None]
    assert meter.problem == "NVML does not say who uses an instance of a GPU (MIG)"
    assert [record.getMessage() for record in caplog.records] == [
        f"what executors say that they use is not seen from outside: {meter.problem}"
    ]
    meter.close()


class PlayedNvml:
    """Says what a test has it say, and is asked by nobody else."""

    def samples(self, since: int) -> tuple[int, list[tuple[int, int, int]]]:
        return 0, []


@pytest.fixture
def meter() -> Iterator[NvmlMeter]:
    meter = NvmlMeter(cast("Nvml", PlayedNvml()))
    yield meter
    meter.close()


def sampled(meter: NvmlMeter, busy: int, ago: float) -> None:
    """Have the driver say now that this process was ``busy``, per cent, so many seconds ago."""
    meter._take_in(0, [(os.getsid(0), int((time() - ago) * 1e6), busy)])


def test_a_sample_counts_for_the_time_since_the_one_before(meter: NvmlMeter) -> None:
    for ago in (0.9, 0.7, 0.5):
        sampled(meter, 50, ago)
    assert meter.seen(os.getsid(0)) == pytest.approx(0.2, rel=1e-3)


def test_a_sample_behind_a_gap_in_asking_counts_for_no_more_than_its_own_time(meter: NvmlMeter) -> None:
    sampled(meter, 100, 30.0)
    sampled(meter, 100, 0.1)
    assert meter.seen(os.getsid(0)) == pytest.approx(0.2)


def test_it_is_known_of_when_a_sample_is_that_came_late(meter: NvmlMeter) -> None:
    now_ns = monotonic_ns()
    sampled(meter, 100, 1.5)
    assert now_ns - meter.as_of(now_ns) == pytest.approx(1.5e9, abs=0.5e9)
    sampled(meter, 100, -3.0)  # of another clock
    assert now_ns - meter.as_of(now_ns) <= 0
    assert meter.as_of(now_ns) == now_ns, "never later than it is asked for"


@pytest.mark.parametrize(("ago", "is_told"), [(0.0, True), (0.9, False)])
def test_what_is_heard_late_of_who_worked_then_is_no_evidence(meter: NvmlMeter, ago: float, is_told: bool) -> None:
    """The driver answers late while somebody makes a context: who is idle by now was not when the sample was taken."""
    pid, now_ns = os.getsid(0), monotonic_ns()
    sampled(meter, 0, ago=2.0)
    watch = Watch(meter, pid, now_ns - 2 * SECOND_NS)
    watch.look(now_ns - SECOND_NS, is_claiming=True, ops_done=3, other_ns=0)
    sampled(meter, 100, ago)
    look = watch.look(now_ns, is_claiming=False, ops_done=3, other_ns=0)
    assert look.seen == (pytest.approx(0.2) if is_told else None)


@pytest.mark.parametrize(
    ("copied", "ago", "seen"),
    [(0.0, 0.0, 0.2), (0.02, 0.0, 0.12), (0.2, 0.0, 0.0), (0.2, 0.3, 0.0), (0.2, 0.8, 0.2), (1e9, 0.0, 0.0)],
)
def test_what_others_copied_just_before_is_not_of_who_had_the_gpu_last(
    meter: NvmlMeter, copied: float, ago: float, seen: float
) -> None:
    """The driver takes copies for the work of whoever computed last, who may be idle behind a shut gate by then."""
    pid, now_ns = os.getsid(0), monotonic_ns()
    sampled(meter, 0, ago=2.0)
    watch = Watch(meter, pid, now_ns - 2 * SECOND_NS)
    if ago:
        watch.look(now_ns - int(ago * SECOND_NS), False, 0, 0, copied)
        copied = 0.0
    sampled(meter, 100, 0.0)
    assert watch.look(now_ns, False, 0, 0, copied).seen == pytest.approx(seen, abs=1e-6)


def test_what_others_copied_excuses_nobody_for_long(meter: NvmlMeter) -> None:
    """Nor can they say that they copied longer than time has passed."""
    pid, now_ns = os.getsid(0), monotonic_ns()
    sampled(meter, 0, ago=4.0)
    watch = Watch(meter, pid, now_ns - 4 * SECOND_NS)
    watch.look(now_ns - int(3.9 * SECOND_NS), False, 0, 0, 1e9)
    told = 0.0
    for ago in range(38, -2, -2):
        sampled(meter, 100, ago / 10)
        told += watch.look(now_ns - ago * SECOND_NS // 10, False, 0, 0).seen or 0.0
    assert told == pytest.approx(4.0 - 0.4, abs=0.25)
