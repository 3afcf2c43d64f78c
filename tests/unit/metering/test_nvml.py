"""What the driver says of who uses a GPU: what its samples count for, of when they are, and where there are none."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from typing import cast

import pytest

from gpu_backend.metering import nvml
from gpu_backend.metering.audit import Account, Conduct
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


#: What the host's clocks say: of the day, and since some time.
DAY, NOW_NS = 1_700_000_000.0, 500 * SECOND_NS


@pytest.fixture
def meter(monkeypatch: pytest.MonkeyPatch) -> Iterator[NvmlMeter]:
    monkeypatch.setattr(nvml, "time", lambda: DAY)
    monkeypatch.setattr(nvml, "monotonic_ns", lambda: NOW_NS)
    meter = NvmlMeter(cast("Nvml", PlayedNvml()))
    yield meter
    meter.close()


def sampled(meter: NvmlMeter, busy: int, ago: float) -> None:
    """Have the driver say now that this process was ``busy``, per cent, so many seconds ago."""
    meter._take_in(0, [(os.getsid(0), int((DAY - ago) * 1e6), busy)])


def test_a_sample_counts_for_the_time_since_the_one_before(meter: NvmlMeter) -> None:
    for ago in (0.9, 0.7, 0.5):
        sampled(meter, 50, ago)
    assert meter.seen(os.getsid(0)) == pytest.approx(0.2)


def test_a_sample_behind_a_gap_in_asking_counts_for_no_more_than_its_own_time(meter: NvmlMeter) -> None:
    sampled(meter, 100, 30.0)
    sampled(meter, 100, 0.1)
    assert meter.seen(os.getsid(0)) == pytest.approx(0.2)


def test_it_is_known_of_when_a_sample_is_that_came_late(meter: NvmlMeter) -> None:
    sampled(meter, 100, 1.5)
    assert NOW_NS - meter.as_of(NOW_NS) == pytest.approx(1.5 * SECOND_NS, rel=1e-3)
    sampled(meter, 100, -3.0)  # of another clock
    assert meter.as_of(NOW_NS) == NOW_NS
    assert meter.as_of(NOW_NS - 1) == NOW_NS - 1, "never later than it is asked for"


@pytest.mark.parametrize(("ago", "is_told"), [(0.0, True), (0.9, False)])
def test_what_is_heard_late_of_who_worked_then_is_no_evidence(meter: NvmlMeter, ago: float, is_told: bool) -> None:
    """The driver answers late while somebody makes a context: who is idle by now was not when the sample was taken."""
    pid, now_ns = os.getsid(0), NOW_NS
    sampled(meter, 0, ago=2.0)
    watch = Watch(meter, pid, now_ns - 2 * SECOND_NS)
    watch.look(now_ns - SECOND_NS, is_claiming=True, ops_done=3, other_ns=0)
    sampled(meter, 100, ago)
    look = watch.look(now_ns, is_claiming=False, ops_done=3, other_ns=0)
    assert look.seen == (pytest.approx(0.2) if is_told else None)


@pytest.mark.parametrize(
    ("copied", "ago", "seen"),
    [(0.0, 0.0, 0.2), (0.02, 0.0, 0.16), (0.2, 0.0, 0.0), (0.2, 0.3, 0.0), (0.2, 0.8, 0.2), (1e9, 0.0, 0.0)],
)
def test_what_others_copied_just_before_is_not_of_who_had_the_gpu_last(
    meter: NvmlMeter, copied: float, ago: float, seen: float
) -> None:
    """The driver takes copies for the work of whoever computed last, who may be idle behind a shut gate by then."""
    pid, now_ns = os.getsid(0), NOW_NS
    sampled(meter, 0, ago=2.0)
    watch = Watch(meter, pid, now_ns - 2 * SECOND_NS)
    if ago:
        watch.look(now_ns - int(ago * SECOND_NS), False, 0, 0, copied)
        copied = 0.0
    sampled(meter, 100, 0.0)
    assert watch.look(now_ns, False, 0, 0, copied).seen == pytest.approx(seen, abs=1e-6)


def looks(meter: NvmlMeter, seconds: int, copied: float = 0.0, op_every: int = 0) -> tuple[float, str]:
    """Look ten times a second at who computes all the time behind a shut gate; return what is counted, and the verdict.

    Others say each time that they ``copied`` so long; it says itself that an op is done at every so many looks.
    """
    pid, account, conduct = os.getsid(0), Account(), Conduct(most_burnt=NvmlMeter.most_burnt)
    sampled(meter, 0, ago=seconds + 0.2)
    watch, counted, ops = Watch(meter, pid, NOW_NS - seconds * SECOND_NS), 0.0, 0
    for look in range(10 * seconds):
        sampled(meter, 100, ago=seconds - look / 10)
        ops += bool(op_every) and not look % op_every
        found = watch.look(NOW_NS - seconds * SECOND_NS + look * SECOND_NS // 10, False, ops, 0, copied)
        account.pass_time(0.1, False)
        counted += account.compare(found)
        if verdict := conduct.offence(found):
            return counted, verdict
    return counted, ""


def test_who_computes_behind_a_shut_gate_is_ended(meter: NvmlMeter) -> None:
    assert looks(meter, 5)[1]


def test_ops_that_are_said_to_be_done_behind_a_shut_gate_are_no_excuse(meter: NvmlMeter) -> None:
    assert looks(meter, 20, op_every=3)[1]


def test_what_others_copied_excuses_no_more_than_twice_as_much(meter: NvmlMeter) -> None:
    counted, verdict = looks(meter, 20, copied=0.02)
    assert verdict or counted > 8, "of each tenth of a second four hundredths are excused"
