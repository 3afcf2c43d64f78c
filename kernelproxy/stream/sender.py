"""The background sender: sends ops that nobody flushes, and keeps the lease while the notebook is idle."""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import monotonic, sleep

from gpu_backend.wire.errors import PoolUnreachable, WorkbenchError
from kernelproxy.stream.batch import OpenBatch
from kernelproxy.stream.pipeline import Pipeline

#: How long recorded ops may wait for company, seconds.
_PATIENCE_SECONDS = 0.002
#: After so many looks without an op the sender sleeps until it is woken.
_QUIET_LOOKS = 50


class Sender:
    """A daemon thread. A full batch never needs it; it serves the last ops before a pause, and pings.

    While the executor has said nothing for ``ping_seconds``, it is in the middle of an op and does not hear the pings:
    then ``vouch`` is called as often, to tell somebody else that the notebook is there.
    """

    def __init__(self, pipeline: Pipeline, ping_seconds: float, vouch: Callable[[], None]) -> None:
        self._pipeline = pipeline
        self._ping_seconds = ping_seconds
        self._vouch, self._vouched_at = vouch, monotonic()
        self._wake = threading.Event()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="gpu-workbench-sender", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._pipeline.wake_sender = self._woken
        self._thread.start()

    @property
    def is_this_thread(self) -> bool:
        """True in the sender's own thread, where nobody waits and nobody can interrupt."""
        return threading.current_thread() is self._thread

    def close(self, timeout_seconds: float) -> None:
        """End, and wait so long for the thread: it may be on its way to a pool that is gone."""
        self._closed.set()
        self._wake.set()
        self._thread.join(timeout_seconds)

    def _woken(self) -> None:
        self._pipeline.sender_sleeps = False
        self._wake.set()

    def _run(self) -> None:
        while not self._closed.is_set():
            self._pipeline.sender_sleeps = True
            if not self._pipeline.open_batch.ops and not self._wake.wait(self._ping_seconds):
                self._quietly(self._pipeline.ping)
                self._keep_lease()
            self._pipeline.sender_sleeps = False
            self._wake.clear()
            self._send_while_busy()

    def _send_while_busy(self) -> None:
        quiet = 0
        before = self._pipeline.open_batch
        while quiet < _QUIET_LOOKS:
            sleep(_PATIENCE_SECONDS)  # half as dear as to wait for an event, and the notebook's own thread pays it
            if self._closed.is_set():
                return
            batch = self._pipeline.open_batch
            is_behind = self._pipeline.is_behind
            if is_behind or (batch is before and batch.ops):
                self._quietly(self._pipeline.flush_if_open, batch)
            self._keep_lease()
            quiet = quiet + 1 if batch is before and not is_behind else 0
            before = batch

    def _keep_lease(self) -> None:
        if monotonic() - max(self._vouched_at, self._pipeline.inbox.spoken_at) >= self._ping_seconds:
            self._vouched_at = monotonic()
            self._vouch()

    def _quietly(self, action: Callable[..., None], *args: OpenBatch) -> None:
        """Run ``action``; what goes wrong here is told by the next op of the user's own thread."""
        try:
            action(*args)
        except PoolUnreachable:
            return  # that op will find it again, unless the pool is back by then
        except WorkbenchError as error:
            self._pipeline.inbox.tell_later(error)
