"""What a session is told of a device that is lost."""

from __future__ import annotations

import pytest

from gpu_backend.executor.answer import Answer, fault_in_words, told_of_fault
from gpu_backend.wire.errors import ErrorRecord

LOST = Answer(error=ErrorRecord("cupy.cuda.runtime.CUDARuntimeError", "an illegal memory access"), fatal=True)


def test_a_fault_where_a_group_shares_the_device_may_be_another_s() -> None:
    told = told_of_fault(LOST, "vision")
    assert told.error is not None
    assert told.error.message == "an illegal memory access", "the library's own words stay"
    note = (
        "The sessions of group 'vision' share this device by MPS: the fault may be another's, and has ended all of "
        "them, with their arrays."
    )
    assert told.error.note == note
    assert fault_in_words(told) == f"The device failed: an illegal memory access. {note}"


@pytest.mark.parametrize(
    ("answer", "group"), [(LOST, ""), (LOST._replace(fatal=False), "vision"), (Answer(1), "vision")]
)
def test_nothing_is_added_elsewhere(answer: Answer, group: str) -> None:
    assert told_of_fault(answer, group) is answer


def test_a_fault_of_one_s_own_is_told_as_it_is() -> None:
    assert fault_in_words(LOST) == "The device failed: an illegal memory access"
