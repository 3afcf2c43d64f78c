"""Which processes of a pool run, as the kernel of the machine tells: whatever became of the notes that name them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from gpu_backend.engine.detached import ProcessId
from gpu_backend.node import arbiter, launcher, mps_files
from gpu_backend.pool.state import PoolState, runtime_names

#: Who starts others anew ends before them.
ROLES = ("supervisor", "gateway", "ray", "agent", "executor", "arbiter", "MPS keeper")
#: Places in /proc/pid/stat, behind the name.
_SESSION, _TERMINAL = 3, 4
_WORDS = {"supervise": "supervisor", "keep": "supervisor", "gateway": "gateway"}


class Running(NamedTuple):
    """A process of the pool."""

    role: str
    identity: ProcessId

    def __str__(self) -> str:
        return f"{self.role} {self.identity.pid}"


def processes(state: PoolState) -> list[Running]:
    """Return the processes of the pool, in the order of `ROLES`; what an executor or Ray has started counts as one."""
    mine = [one for one in map(_Process.of, _pids()) if one is not None]
    roles = {one.identity.pid: one.role(state) for one in mine}
    # An executor has its session for itself, and so has Ray: the shell that began it has ended at once.
    lonely = {
        one.session: role
        for one in mine
        if (role := roles[one.identity.pid]) in ("executor", "ray") and ProcessId.of(one.session) is None
    }
    found = [Running(roles[one.identity.pid] or lonely.get(one.session, ""), one.identity) for one in mine]
    return sorted((one for one in found if one.role), key=lambda one: ROLES.index(one.role))


class _Process(NamedTuple):
    """A process of our user without a terminal: what is typed by a person is none of the pool's."""

    identity: ProcessId
    session: int
    words: tuple[str, ...]

    @classmethod
    def of(cls, pid: int) -> _Process | None:
        try:
            proc = Path(f"/proc/{pid}")
            stat = (proc / "stat").read_text()
            fields = stat[stat.rindex(")") + 2 :].split()
            # Not the owner of the directory: that is root where a process keeps others from looking into it.
            uids = next(line for line in (proc / "status").read_text().splitlines() if line.startswith("Uid:"))
            words = os.fsdecode((proc / "cmdline").read_bytes()).split("\0")
            identity = ProcessId.of(pid)
        except (OSError, ValueError, StopIteration):  # it has ended meanwhile
            return None
        is_ours = uids.split()[1] == str(os.getuid()) and pid != os.getpid()
        if identity is None or not is_ours or fields[_TERMINAL] != "0":
            return None
        return cls(identity, int(fields[_SESSION]), tuple(words))

    def role(self, state: PoolState) -> str:
        """Return what it is in the pool of ``state``; "" if nothing."""
        words = self.words
        if "gpu_backend.pool" in words[:-1] and str(state.root) in words:
            return _WORDS.get(words[words.index("gpu_backend.pool") + 1], "")
        if "gpu_backend.node" in words and str(state.node) in words:
            return "agent"
        if any(Path(word.partition("=")[2]).is_relative_to(state.ray) for word in words if word.startswith("--")):
            return "ray"
        return next((role for word in words if (role := _role_in(Path(word), state))), "")


def _role_in(directory: Path, state: PoolState) -> str:
    """Return whose ``directory`` it is: executors, arbiters and keepers of MPS have their own below the runtime one.

    A pool that was started under other variables has it in another place, and with the same name.
    """
    runtime = directory.parent.parent
    if runtime != state.runtime and runtime.name not in runtime_names(state.root):
        return ""
    kinds = {launcher.EXECUTORS: "executor", arbiter.ARBITERS: "arbiter", mps_files.DAEMONS: "MPS keeper"}
    return kinds.get(directory.parent.name, "")


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]
