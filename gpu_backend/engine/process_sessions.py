"""All that a process has started, found at its end by the session that none of it can leave."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from gpu_backend.engine.detached import ProcessId, Watched

__all__ = ["end_session"]

#: How often what is left is looked for: whoever starts others all the while is not outrun for ever.
_TRIES = 20


def end_session(leader: ProcessId) -> int:
    """Kill what is left of the session that ``leader`` led, which has ended itself; return how many were seen.

    First all at once, by the group that it led, too: whoever starts another and ends is gone before it is found, but
    the system starts nobody for a process of a group that is being killed. Then, one by one, who has left the group,
    which nothing in a sandbox can.

    As long as any of it runs its number is given to no other process. So if there is a process of that number, or what
    is there is older than the leader, the session is another one.
    """
    killed = 0
    for _ in range(_TRIES):
        left = list(_members(leader.pid))
        if ProcessId.of(leader.pid) is not None or any(one.start_time < leader.start_time for one in left):
            return killed
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(leader.pid, signal.SIGKILL)
        if not left:
            return killed
        for identity in left:
            killed += 1
            with suppress(ProcessLookupError, PermissionError):
                watched = Watched(identity)
                watched.send_signal(signal.SIGKILL)
                watched.close()
    return killed


def _members(session: int) -> Iterator[ProcessId]:
    for path in Path("/proc").iterdir():
        if not path.name.isdecimal():
            continue
        try:
            fields = (path / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] not in "ZX":
            yield ProcessId(int(path.name), int(fields[19]))
