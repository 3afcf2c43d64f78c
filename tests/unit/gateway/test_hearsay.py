"""What a node says is refused as a whole if it cannot be; what it says twice counts once."""

from __future__ import annotations

import msgspec
import pytest

from gpu_backend.gateway.hearsay import fit_report
from gpu_backend.wire.control import ExecutorReport, NodeReport
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
