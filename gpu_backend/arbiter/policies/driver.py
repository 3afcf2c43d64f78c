"""No gate at all: the driver's own turns between processes, the baseline."""

from __future__ import annotations

from typing import ClassVar

from gpu_backend.arbiter.views import DeviceView, Slice, Suggestion

__all__ = ["Driver"]


class Driver:
    """Every gate is open; what sharing there is, the driver does between processes.

    Takes nothing from a paper: it is what a GPU does when several processes use it. Equal turns per process, so a
    user with three notebooks of four gets three quarters of the device. Classes, requests, limits and weights are
    ignored.

    Source: NVIDIA's time slicing, as measured beside the other policies.
    """

    name: ClassVar[str] = "driver"
    opens_idle: ClassVar[bool] = False
    is_work_conserving: ClassVar[bool] = True

    def suggest(self, view: DeviceView) -> Suggestion:
        """Return an endless slice for everybody, whether they wait or not."""
        return Suggestion(tuple([Slice(session.id) for session in view.sessions]))
