"""All that a process has started, found at its end by the session that none of it can leave."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from gpu_backend.engine.detached import ProcessId, Watched

__all__ = ["end_session", "numbers_in"]

#: How often what is left is looked for: whoever starts others all the while is not outrun for ever.
_TRIES = 20


class _Found(NamedTuple):
    """A process of a session or of a group."""

    identity: ProcessId
    session: int


def end_session(leader: ProcessId) -> int:
    """Kill what is left of the session that ``leader`` led, which has ended itself; return how many were seen.

    First all at once, by the group that it led, too: whoever starts another and ends is gone before it is found, but
    the system starts nobody for a process of a group that is being killed. Then, one by one, who has left the group,
    which nothing in a sandbox can.

    As long as any of it runs its number is given to no other process. So if there is a process of that number, or what
    is there is older than the leader, or of another session, the number is somebody else's by now.
    """
    seen: set[ProcessId] = set()
    for _ in range(_TRIES):
        left = list(_of_number(leader.pid))
        is_anothers = any(one.session != leader.pid or one.identity.start_time < leader.start_time for one in left)
        if is_anothers or ProcessId.of(leader.pid) is not None:
            break
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(leader.pid, signal.SIGKILL)
        if not left:
            break
        for one in left:
            seen.add(one.identity)
            with suppress(ProcessLookupError, PermissionError):
                watched = Watched(one.identity)
                watched.send_signal(signal.SIGKILL)
                watched.close()
    return len(seen)


def numbers_in(session: int) -> Iterator[int]:
    """Yield the numbers of the processes that are in ``session`` now. Cheap, for what is asked again and again."""
    for name in os.listdir("/proc"):
        if name.isdecimal():
            with suppress(ProcessLookupError, PermissionError):  # it has ended, or is another account's
                if os.getsid(int(name)) == session:
                    yield int(name)


def _of_number(number: int) -> Iterator[_Found]:
    """Yield who is in the session or in the group of that number."""
    for path in Path("/proc").iterdir():
        if not path.name.isdecimal():
            continue
        try:
            fields = (path / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        group, session = int(fields[2]), int(fields[3])
        if number in (group, session) and fields[0] not in "ZX":
            yield _Found(ProcessId(int(path.name), int(fields[19])), session)
