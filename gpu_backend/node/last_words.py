"""What a gateway is told of executors that have ended, until it can be taken that one has noted it. Pure."""

from __future__ import annotations

from collections.abc import Callable

from gpu_backend.wire.control import ExecutorEnded

__all__ = ["LastWords"]

#: So long it is remembered what a gateway was told, seconds: it notes that at once, if it lives.
_REMEMBERED_SECONDS = 60.0


class LastWords:
    """The ends of executors, each by its session and epoch.

    A gateway that dies may take with it what was on its way to it: its machine takes messages for it until the last of
    its threads has gone. The next one would find a session without an executor, and take it for lost. To be told twice
    means nothing to a gateway.
    """

    def __init__(self) -> None:
        self._untold: dict[tuple[str, int], ExecutorEnded] = {}
        self._told: dict[tuple[str, int], tuple[float, ExecutorEnded]] = {}

    def add(self, ended: ExecutorEnded) -> None:
        """Take in an end."""
        self._untold.setdefault((ended.session, ended.epoch), ended)

    def tell(self, send: Callable[[ExecutorEnded], bool], was_away: bool, now: float) -> None:
        """Tell what is untold by ``send``, which tells whether a gateway was there.

        ``was_away`` is whether the connection was lost since the last time: then what was told of late is told again.
        """
        self._told = {key: one for key, one in self._told.items() if now - one[0] < _REMEMBERED_SECONDS}
        if was_away:
            self._untold = {key: ended for key, (_, ended) in self._told.items()} | self._untold
        for key, ended in list(self._untold.items()):
            if not send(ended):
                return
            del self._untold[key]
            self._told[key] = now, ended
