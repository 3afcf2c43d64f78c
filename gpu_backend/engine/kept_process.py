"""One process that is kept running: it outlives whoever keeps it, and is found again by the next one who does."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic

from gpu_backend.engine.detached import Watched, read_identity, spawn, write_identity

log = logging.getLogger("engine.kept_process")

__all__ = ["KeptProcess"]

#: What ends sooner than this after its start is started again ever later, seconds.
_STEADY_SECONDS = 5.0
_LONGEST_PAUSE_SECONDS = 10.0
#: How long the process has to end after it was asked to, seconds.
_STOP_SECONDS = 5.0


class KeptProcess:
    """A process that is adopted where it runs, started where it does not, and started again when it ends."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        directory: Path,
        log_file: Path,
        environment: Mapping[str, str] | None = None,
        clear: Callable[[], object] | None = None,
    ) -> None:
        """Run ``command`` in ``directory``, where its identity is noted as ``name``; its words go to ``log_file``.

        ``environment`` is its own, else it has ours. ``clear`` ends what one that was killed has left behind, and is
        called before another is started.
        """
        self._name = name
        self._command = tuple(command)
        self._directory = directory
        self._log_file = log_file
        self._environment = environment
        self._clear = clear
        self._identity_file = directory / f"{name}.json"
        self._running: Watched | None = None
        self._is_wanted = False
        self._wake = asyncio.Event()

    async def keep(self) -> AsyncIterator[None]:
        """Keep the process while it is wanted; yield whenever it had to be started again."""
        failures = 0
        while True:
            if not self._is_wanted:
                await self._wake.wait()
            elif self._running is None:
                # The first time at once: a session may be waiting for it.
                await asyncio.sleep(min(0.1 * 2**failures, _LONGEST_PAUSE_SECONDS) if failures > 1 else 0)
                if not self._is_missing():
                    continue  # somebody has wanted it meanwhile, and started it; or wants it no longer
                if self._start():
                    yield None
                else:
                    failures += 1
            else:
                since = monotonic()
                await self._running.ended()
                self._running.close()
                self._running = None
                failures = 0 if monotonic() - since > _STEADY_SECONDS else failures + 1
            self._wake.clear()

    def want(self) -> None:
        """Adopt the process that an earlier keeper started, or start one. Idempotent."""
        self._is_wanted = True
        if self._running is None:  # else `keep` sees to it
            found = read_identity(self._identity_file)
            if found is not None:
                with suppress(ProcessLookupError):
                    self._running = Watched(found)
                    log.info("adopted %s, pid %d", self._name, found.pid)
            if self._running is None:
                self._start()
        self._wake.set()

    async def stop(self) -> None:
        """End the process and want it no longer. Idempotent."""
        self._is_wanted = False
        found = read_identity(self._identity_file)
        if found is None:
            return
        with suppress(ProcessLookupError):
            process = Watched(found)
            process.send_signal(signal.SIGTERM)
            try:
                async with asyncio.timeout(_STOP_SECONDS):
                    await process.ended()
            except TimeoutError:
                log.error("%s did not end within %.0f s: killed", self._name, _STOP_SECONDS)
                process.send_signal(signal.SIGKILL)
                await process.ended()
            finally:
                process.close()

    def _is_missing(self) -> bool:
        return self._is_wanted and self._running is None

    def _start(self) -> bool:
        if self._clear is not None:
            self._clear()
        try:
            identity = spawn(self._command, self._log_file, self._directory, environment=self._environment)
            self._running = Watched(identity)
        except ProcessLookupError as error:
            log.error("%s ended at once: %s", self._name, error)
            return False
        # An agent notes itself there too; this covers the time until it does.
        write_identity(self._identity_file, identity)
        log.info("started %s, pid %d", self._name, identity.pid)
        return True
