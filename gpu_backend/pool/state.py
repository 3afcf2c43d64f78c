"""Where a pool keeps its things: records and keys in a state directory, sockets in a private one with a short path."""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from gpu_backend.node.launcher import PROBLEM_NOTE
from gpu_backend.wire.errors import PoolRefusal

#: ``sun_path`` holds 108 bytes with its final zero.
_LONGEST_IPC_PATH = 107
_RUNTIME_NOTE = "runtime"
_LONGEST_BELOW = len("/x/01234567/control")


@dataclass(frozen=True, slots=True)
class PoolState:
    """The paths of one pool. Make it with `at`."""

    root: Path
    #: Sockets and what belongs to running processes; gone with the machine's next start.
    runtime: Path

    @property
    def settings_file(self) -> Path:
        return self.root / "pool.toml"

    @property
    def directory_file(self) -> Path:
        return self.root / "directory.sqlite"

    @property
    def accounts_file(self) -> Path:
        return self.root / "accounts.sqlite"

    @property
    def keys(self) -> Path:
        return self.root / "keys"

    @property
    def gateway_key(self) -> Path:
        return self.keys / "gateway.key"

    @property
    def agent_key(self) -> Path:
        return self.keys / "agent.key"

    @property
    def operator_key(self) -> Path:
        return self.keys / "operator.key"

    @property
    def node(self) -> Path:
        return self.root / "node"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def client_endpoint(self) -> str:
        return f"ipc://{self.runtime}/gateway"

    @property
    def agent_endpoint(self) -> str:
        return f"ipc://{self.runtime}/agents"

    @property
    def stopped_note(self) -> Path:
        return self.runtime / "stopped"

    @property
    def problem_note(self) -> Path:
        return self.node / PROBLEM_NOTE

    def process_file(self, name: str) -> Path:
        """Return where the identity of the process called ``name`` is noted."""
        return self.node / "agent.json" if name == "agent" else self.runtime / f"{name}.json"

    def make(self) -> None:
        """Make the directories that are missing, for their owner only, and note which they are.

        Raises
        ------
        PoolRefusal
            If one of them is somebody else's or can be entered by others.
        """
        for path in (self.root, self.keys, self.node, self.logs, self.runtime):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            status = path.lstat()
            # In /tmp anybody could have made it first, or put a link there.
            if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o077:
                raise PoolRefusal(f"{path} is not a directory of yours alone. Run `chmod 700 {path}`, or remove it.")
        (self.root / _RUNTIME_NOTE).write_text(str(self.runtime))


def at(root: Path | None = None) -> PoolState:
    """Return the paths of the pool in ``root``, or of the user's own pool. Nothing is made yet."""
    root = (root or default_root()).expanduser().resolve()
    # Who comes later, perhaps from a login with other variables, must find the same sockets.
    try:
        noted = Path((root / _RUNTIME_NOTE).read_text())
        if noted.parent.is_dir():
            return PoolState(root, noted)
    except OSError:
        pass
    name = hashlib.sha256(os.fsencode(root)).hexdigest()[:10]
    base = os.environ.get("XDG_RUNTIME_DIR")
    runtime = Path(base) / f"gpu-workbench-{name}" if base and Path(base).is_dir() else _in_tmp(name)
    if len(os.fsencode(runtime)) + _LONGEST_BELOW > _LONGEST_IPC_PATH:
        runtime = _in_tmp(name)
    return PoolState(root, runtime)


def default_root() -> Path:
    """Return where a user's own pool keeps its state."""
    base = os.environ.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local" / "state") / "gpu-workbench" / "pool"


def _in_tmp(name: str) -> Path:
    return Path(f"/tmp/gpu-workbench-{os.geteuid()}-{name}")
