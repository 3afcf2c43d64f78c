"""The seam between the core and a policy."""

from __future__ import annotations

from typing import ClassVar, Protocol, runtime_checkable

from gpu_backend.arbiter.views import DeviceView, SessionView, Suggestion

__all__ = ["DividesByWeights", "LetsShortOpsPass", "SharingPolicy"]


class SharingPolicy(Protocol):
    """Suggests which sessions may launch on a device next.

    A policy never touches a socket, a clock or a process. It sees a frozen view of one device and suggests; the core
    may refuse any of it, so a wrong policy can be unfair but not unsafe. It may remember what it has been shown, and
    nothing else: two objects of the same policy that are shown the same views suggest the same.
    """

    #: By which users choose it.
    name: ClassVar[str]
    #: Whether the gates of sessions without queued ops stand open while nobody waits for the device: who comes to an
    #: idle device need not ask. While somebody waits everybody asks, or short loops would pass the policy by.
    opens_idle: ClassVar[bool]
    #: Whether it promises to suggest somebody whenever somebody waits.
    is_work_conserving: ClassVar[bool]

    def suggest(self, view: DeviceView) -> Suggestion:
        """Return what should be granted from ``view.now`` on.

        Called by :class:`~gpu_backend.arbiter.scheduler.Scheduler` when a session joins, leaves, changes its terms,
        begins or ceases to wait or to be urgent, when a slice has ended and when the policy wanted to be asked.

        Parameters
        ----------
        view
            The device, and what happened on it since the last call: every charge is shown exactly once.

        Returns
        -------
        Suggestion
            Slices for sessions on the device, each at most once. None means "leave the device idle".
        """
        ...


@runtime_checkable
class LetsShortOpsPass(SharingPolicy, Protocol):
    """A policy under which the short op of an idle session may go before anybody was asked."""

    #: GPU time that may be used so until it asks, seconds.
    lane_seconds: float

    def may_pass(self, session: SessionView, now: float) -> bool:
        """Return whether ``session``, which has nothing queued, may pass those who wait.

        Called when its gate would be shut, and after each use that was made of the lane.
        """
        ...


@runtime_checkable
class DividesByWeights(SharingPolicy, Protocol):
    """A policy under which users, and groups, who want the device get it in proportion to the weights of their terms.

    A pool of several devices steers those under such a policy by these weights. Under any other it counts what is used.
    """

    divides_by_weights: ClassVar[bool]
