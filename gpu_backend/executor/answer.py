"""What an op has to say."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

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


def fault_in_words(message: str, group: str) -> str:
    """Return what a session is told of its device's fault, which may be that of another session of its ``group``."""
    if not group:
        return f"The device failed: {message}"
    return f"The device failed, by a fault of this session or of another of group {group!r} that shares it: {message}"
