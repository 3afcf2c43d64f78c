"""Processes that outlive whoever started them: started twice removed, known by pid and start time, watched by pidfd."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from gpu_backend.transport.private_files import replace_private

log = logging.getLogger("engine.detached")

#: The shell ends at once, so the command's parent is init; `start_new_session` gives both a session of their own.
#: Not os.fork: the caller has libzmq's threads, and a forked Python among them may hang.
_TWICE_REMOVED = 'umask 077; log=$1; shift; "$@" >>"$log" 2>&1 </dev/null & echo $!'


class ProcessId(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A process and no other that may get its number later. ``start_time`` is field 22 of ``/proc/pid/stat``."""

    pid: int
    start_time: int

    @classmethod
    def of(cls, pid: int) -> ProcessId | None:
        """Return the identity of the running process ``pid``; None if there is none, or only its zombie.

        One that was killed is a zombie from its first thread's end on, and may still hold its sockets and its memory:
        until its last thread has ended it runs.
        """
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            return None
        fields = stat[stat.rindex(")") + 2 :].split()  # the name before it may hold blanks and parentheses
        has_ended = fields[0] in "ZX" and int(fields[17]) <= 1
        return None if has_ended else cls(pid, int(fields[19]))

    @classmethod
    def mine(cls) -> ProcessId:
        """Return the identity of this process."""
        own = cls.of(os.getpid())
        if own is None:
            raise ProcessLookupError("This process is not in /proc; is /proc mounted?")
        return own

    def age_seconds(self) -> float:
        """Return how long ago the process was started."""
        return time.clock_gettime(time.CLOCK_BOOTTIME) - self.start_time / os.sysconf("SC_CLK_TCK")

    @property
    def is_running(self) -> bool:
        """Whether the process still runs."""
        return ProcessId.of(self.pid) == self


def spawn(
    command: Sequence[str],
    log: Path,
    directory: Path,
    descriptors: Sequence[int] = (),
    environment: Mapping[str, str] | None = None,
) -> ProcessId:
    """Start ``command`` in ``directory`` so that it outlives this process, and return its identity.

    Its output is appended to ``log``. Its environment is ours unless another is given, and of our descriptors it has
    those that are named, under the same numbers.

    Raises
    ------
    ProcessLookupError
        If it ended at once; ``log`` says why.
    """
    shell = ["/bin/sh", "-c", _TWICE_REMOVED, "sh", str(log), *command]
    started = subprocess.run(
        shell, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, cwd=directory, start_new_session=True, check=True,
        pass_fds=descriptors, env=environment,
    )  # fmt: skip
    identity = ProcessId.of(int(started.stdout))
    if identity is None:
        raise ProcessLookupError(f"{command[0]} ended as soon as it was started; see {log}.")
    return identity


def write_identity(path: Path, identity: ProcessId) -> None:
    """Note ``identity`` in ``path``, all or nothing."""
    replace_private(path, msgspec.json.encode(identity))


def read_identity(path: Path) -> ProcessId | None:
    """Return the process noted in ``path`` if it still runs."""
    identity = noted_identity(path)
    return identity if identity is not None and identity.is_running else None


def noted_identity(path: Path) -> ProcessId | None:
    """Return the process noted in ``path``, running or not; None if none is, or, which is said, if that is no note."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=ProcessId)
    except OSError:
        return None
    except msgspec.DecodeError as error:
        log.error("which process %s notes cannot be read: %s", path, error)
        return None


class Watched:
    """A running process, ours or not, held by a pidfd: its number cannot come to mean another process."""

    def __init__(self, identity: ProcessId) -> None:
        """Hold ``identity``.

        Raises
        ------
        ProcessLookupError
            If it does not run any more.
        """
        self.identity = identity
        self._descriptor = os.pidfd_open(identity.pid)
        if not identity.is_running:
            self.close()
            raise ProcessLookupError(f"Process {identity.pid} has ended.")

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal; a process that has ended meanwhile is left in peace."""
        try:
            signal.pidfd_send_signal(self._descriptor, number)
        except ProcessLookupError:
            return

    async def ended(self) -> None:
        """Wait until the process has ended."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        # A pidfd is readable for ever once its process has ended, so nothing is missed before the reader stands.
        loop.add_reader(self._descriptor, _resolve, future)
        try:
            await future
        finally:
            loop.remove_reader(self._descriptor)

    def close(self) -> None:
        """Let go of the process; it runs on."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def end(identity: ProcessId, grace_seconds: float) -> None:
    """End a process: ask first, kill after ``grace_seconds``; return when it is gone. For code without a loop."""
    end_all([identity], grace_seconds)


def end_all(identities: Sequence[ProcessId], grace_seconds: float) -> None:
    """End processes as `end` does, all at the same time."""
    for number, seconds in ((signal.SIGTERM, grace_seconds), (signal.SIGKILL, 10.0)):
        for identity in identities:
            with suppress(ProcessLookupError, PermissionError):  # one that is not ours to end runs on
                watched = Watched(identity)
                watched.send_signal(number)
                watched.close()
        deadline = time.monotonic() + seconds
        if all(wait_gone(identity, deadline - time.monotonic()) for identity in identities):
            return


def wait_gone(identity: ProcessId, seconds: float) -> bool:
    """Wait until the process has ended, at most ``seconds``; tell whether it has."""
    deadline = time.monotonic() + seconds
    while identity.is_running:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
