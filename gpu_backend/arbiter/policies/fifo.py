"""First come, first served, each until its queue is empty."""

from __future__ import annotations

from typing import ClassVar

from gpu_backend.arbiter.views import DeviceView, Slice, Suggestion

__all__ = ["Fifo"]


class Fifo:
    """Serves the session that has waited longest until nothing of it is queued, then the next.

    The discipline of a queue without an arbiter, and the one that others are compared with. It shows what they
    remove: an endless stream of ops holds everybody else back until the core relieves them.

    A standard discipline, taken from no paper. Classes, requests, limits and weights are ignored.
    """

    name: ClassVar[str] = "fifo"
    opens_idle: ClassVar[bool] = False
    is_work_conserving: ClassVar[bool] = True

    def suggest(self, view: DeviceView) -> Suggestion:
        """Return an endless slice for the session that began to wait first."""
        return Suggestion((Slice(view.waiting[0].id),)) if view.waiting else Suggestion()
