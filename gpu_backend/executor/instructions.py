"""What an executor can be told to do next; `loop` decides which, and `process` carries it out."""

from __future__ import annotations

from enum import Enum

import msgspec

__all__ = [
    "Check", "Drop", "Learn", "Measure", "Receive", "Rehearse", "Report", "Run", "Sleep", "Spin", "Step", "Stop",
    "Wait",
]  # fmt: skip


class Wait(Enum):
    """What an executor waits for that runs nothing."""

    #: Ops of the notebook that may run.
    WORK = "work"
    #: An end of what the device has in flight.
    ROOM = "room"
    #: Leave of the arbiter.
    GATE = "gate"


class Stop(msgspec.Struct, frozen=True):
    """Nothing more: the session is over."""


class Run(msgspec.Struct, frozen=True, gc=False):
    """Tell what is due, and launch ops while gate and device take them, but none after ``until``."""

    until: float


class Drop(msgspec.Struct, frozen=True, gc=False):
    """Pass over ops that were cancelled, but not beyond ``until``. Needs no gate: nothing is launched."""

    until: float


class Receive(msgspec.Struct, frozen=True):
    """Take what the sockets have, and do not wait."""


class Measure(msgspec.Struct, frozen=True):
    """Look how much memory is held."""


class Check(msgspec.Struct, frozen=True):
    """Look whether the leases hold, and the session's owner still runs."""


class Learn(msgspec.Struct, frozen=True):
    """Learn something of the ops that came, which takes less than a millisecond; then take what the sockets have."""


class Rehearse(msgspec.Struct, frozen=True):
    """Ask the notebook's last question again where nobody hears it; then take what the sockets have."""


class Report(msgspec.Struct, frozen=True, gc=False):
    """Tell the arbiter what is due, or all if it ``is_resting``. Who rests for want of work tells the notebook too."""

    wait: Wait
    is_resting: bool


class Spin(msgspec.Struct, frozen=True, gc=False):
    """Look for what is waited for, and for messages, but not beyond ``until``; then take what the sockets have."""

    wait: Wait
    until: float


class Sleep(msgspec.Struct, frozen=True, gc=False):
    """Sleep until a message comes or the bell is rung, but not beyond ``until``; then take what the sockets have."""

    wait: Wait
    until: float


Step = Stop | Run | Drop | Receive | Measure | Check | Learn | Rehearse | Report | Spin | Sleep
