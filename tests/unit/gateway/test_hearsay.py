"""What a node says is refused as a whole if it cannot be; what it says twice counts once."""

from __future__ import annotations

import msgspec
import pytest

from gpu_backend.gateway.hearsay import fit_report
from gpu_backend.gateway.seals import Seals
from gpu_backend.transport import curve
from gpu_backend.wire.control import Booked, ExecutorReport, Launch, NodeReport
from gpu_backend.wire.errors import MalformedMessage

LINE = ExecutorReport("s", 1, 0, "k" * 40, (), "5" * 64, "c" * 64, 0, 60.0, 0, 0, 0.0)


def test_a_session_in_one_epoch_has_one_line() -> None:
    later = msgspec.structs.replace(LINE, ops=7)
    other = msgspec.structs.replace(LINE, epoch=2)
    assert fit_report(NodeReport((), (LINE, other, later), 2)).executors == (later, other)


@pytest.mark.parametrize("epoch", [-1, 1 << 51])
def test_an_epoch_that_cannot_be_is_refused(epoch: int) -> None:
    with pytest.raises(MalformedMessage, match="figures"):
        fit_report(NodeReport((), (msgspec.structs.replace(LINE, epoch=epoch),), 1))


@pytest.mark.parametrize(
    "line",
    [
        {"others": (1, -1)},
        {"others": (1,), "others_booked": (Booked(float("nan")),)},
        {"others": (1,), "held": (0, -1)},
    ],
)
def test_what_cannot_be_of_other_devices_is_refused(line: dict[str, object]) -> None:
    with pytest.raises(MalformedMessage, match="figures"):
        fit_report(NodeReport((), (msgspec.structs.replace(LINE, **line),), 1))


def test_an_executor_has_no_more_devices_than_a_session_may_have() -> None:
    most = msgspec.structs.replace(LINE, others=tuple(range(1, 64)))
    assert fit_report(NodeReport((), (most,), 1)).executors == (most,)
    with pytest.raises(MalformedMessage, match="more devices"):
        fit_report(NodeReport((), (msgspec.structs.replace(LINE, others=tuple(range(1, 65))),), 1))


def test_a_seal_is_of_all_devices() -> None:
    seals = Seals(curve.generate())
    order = Launch("s", 1, 0, "k" * 40, 0, 60.0, others=(2, 1))
    told = msgspec.structs.replace(LINE, others=(2, 1), seal=seals.sealed("n", order, 7.5).seal)
    assert seals.opened_at("n", told) == 7.5
    for others in ((), (1, 2), (2, 1, 3)):
        assert seals.opened_at("n", msgspec.structs.replace(told, others=others)) is None
    plain = msgspec.structs.replace(LINE, seal=seals.sealed("n", msgspec.structs.replace(order, others=()), 7.5).seal)
    assert seals.opened_at("n", plain) == 7.5


def test_a_seal_is_of_when_its_session_was_opened() -> None:
    seals = Seals(curve.generate())
    seal = seals.sealed("n", Launch("s", 1, 0, "k" * 40, 0, 60.0), 7.5).seal
    _, _, digest = seal.partition(":")
    for forged in (f"{(8.5).hex()}:{digest}", f":{digest}", digest, f"nan:{digest}", ":", ""):
        assert seals.opened_at("n", msgspec.structs.replace(LINE, seal=forged)) is None
