"""What an op has to say."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace

from gpu_backend.wire.errors import ErrorRecord, WarningRecord
from gpu_backend.wire.values import Value


class Answer(NamedTuple):
    """The value of an op, its buffers and warnings, or its error. ``fatal`` says that the device is lost with it.

    ``is_synchronized`` tells that the device had done all before it when it was made, as it shows what was computed.
    """

    value: Value = None
    buffers: tuple[np.ndarray[Any, Any], ...] = ()
    error: ErrorRecord | None = None
    fatal: bool = False
    warnings: tuple[WarningRecord, ...] | None = None
    is_synchronized: bool = False


def told_of_fault(answer: Answer, group: str) -> Answer:
    """Return ``answer`` with what is to be said of a device that is lost, if it is.

    On one that is shared by MPS all sessions, of one ``group``, get the same error at once, and CUDA does not say whose
    fault it is (an H100, driver 580).
    """
    if not answer.fatal or answer.error is None or not group:
        return answer
    note = (
        f"The sessions of group {group!r} share this device by MPS: the fault may be another's, and has ended all of "
        "them, with their arrays."
    )
    return answer._replace(error=replace(answer.error, note=note))


def fault_in_words(answer: Answer) -> str:
    """Return why a session ends whose device is lost, by what the last op had to say."""
    error = answer.error
    assert error is not None
    return f"The device failed: {error.message}" + (f". {error.note}" if error.note else "")
