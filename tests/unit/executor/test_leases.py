"""Until when an executor goes on, and why it ends."""

from __future__ import annotations

import pytest

from gpu_backend.executor.leases import Leases
from gpu_backend.wire.control import EndCause


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_who_is_wanted_goes_on_until_nobody_says_so_any_more(clock: Clock) -> None:
    leases = Leases(5.0, clock)
    clock.now += 5.0
    assert leases.lapse(False) is None
    leases.renew(10.0)
    clock.now += 10.0
    assert leases.lapse(False) is None
    clock.now += 0.1
    assert leases.lapse(False) == ("Nobody in the pool answers for this executor any more.", EndCause.ORPHANED)


def test_a_notebook_has_to_be_heard_once_there_is_a_session(clock: Clock) -> None:
    leases = Leases(1e6, clock)
    clock.now += 1e3
    assert leases.lapse(False) is None
    leases.assign(60.0)
    assert leases.idle_seconds == 0.0
    clock.now += 60.0
    assert leases.lapse(False) is None
    leases.note_heard()
    clock.now += 61.0
    assert leases.idle_seconds == 61.0
    assert leases.lapse(False) == ("The notebook was not heard for 60 s.", EndCause.LEASE_LAPSED)


def test_a_session_ends_with_its_owner(clock: Clock) -> None:
    leases = Leases(5.0, clock)
    assert leases.lapse(True) == ("The process that held the session has ended.", EndCause.CLIENT_ENDED)
