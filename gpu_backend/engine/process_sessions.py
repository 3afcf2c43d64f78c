"""All that a process has started, found at its end by the session that none of it can leave."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from gpu_backend.engine.detached import ProcessId, Watched

__all__ = ["end_session"]

#: How often what is left is looked for: whoever starts others all the while is not outrun for ever.
_TRIES = 20


def end_session(leader: ProcessId) -> int:
    """Kill what is left of the session that ``leader`` led, which has ended itself; return how many were killed.

    As long as any of it runs its number is given to no other process. So if there is a process of that number, or what
    is there is older than the leader, the session is another one.
    """
    killed = 0
    for _ in range(_TRIES):
        if ProcessId.of(leader.pid) is not None:
            return killed
        left = list(_members(leader))
        if not left:
            return killed
        for identity in left:
            with suppress(ProcessLookupError, PermissionError):
                watched = Watched(identity)
                watched.send_signal(signal.SIGKILL)
                watched.close()
                killed += 1
    return killed


def _members(leader: ProcessId) -> Iterator[ProcessId]:
    for path in Path("/proc").iterdir():
        if not path.name.isdecimal():
            continue
        try:
            fields = (path / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        state, session, start_time = fields[0], int(fields[3]), int(fields[19])
        if session == leader.pid and start_time >= leader.start_time and state not in "ZX":
            yield ProcessId(int(path.name), start_time)
