"""Where a pool keeps its things: records and keys in a state directory, sockets in a private one with a short path."""

from __future__ import annotations

import fcntl
import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gpu_backend.node.launcher import PROBLEM_NOTE
from gpu_backend.pool.own_root import default_root
from gpu_backend.transport.private_files import write_private
from gpu_backend.wire.errors import PoolRefusal, PoolUnreachable

#: ``sun_path`` holds 108 bytes with its final zero.
_LONGEST_IPC_PATH = 107
#: Under this name the gateway is noted that was ended for the next one to have other settings.
REPLACED = "replaced"
_RUNTIME_NOTE = "runtime"
_LONGEST_BELOW = len("/r/session_2026-01-01_00-00-00_000000_1234567/sockets/plasma_store")


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
    def ray(self) -> Path:
        """Where Ray has its sockets and logs; its paths below that are long."""
        return self.runtime / "r"

    @property
    def ray_token(self) -> Path:
        return self.keys / "ray.token"

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

    def need(self) -> None:
        """Go on only where there is a pool, be it up or not.

        Raises
        ------
        PoolUnreachable
            If there never was one, or it is another user's; the message says what to do.
        """
        if not self.operator_key.exists():
            raise PoolUnreachable(
                f"There is no pool in {self.root}. Run `workbench pool up` or `workbench lab` for one on this machine; "
                "this command is for whoever runs a pool, on its own machine (--state names one that lies elsewhere)."
            )

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
        write_private(self.root / _RUNTIME_NOTE, str(self.runtime).encode())


def at(root: Path | None = None) -> PoolState:
    """Return the paths of the pool in ``root``, or of the user's own pool. Nothing is made yet."""
    root = (root or default_root()).expanduser().resolve()
    # Who comes later, perhaps from a login with other variables, must find the same sockets.
    noted = _noted(root)
    if noted is not None:
        return PoolState(root, noted)
    base = os.environ.get("XDG_RUNTIME_DIR")
    in_tmp, in_login = runtime_names(root)
    runtime = Path(base, in_login) if base and Path(base).is_dir() else Path("/tmp", in_tmp)
    if not runtime.is_absolute() or len(os.fsencode(runtime)) + _LONGEST_BELOW > _LONGEST_IPC_PATH:
        runtime = Path("/tmp", in_tmp)
    return PoolState(root, runtime)


def runtime_names(root: Path) -> tuple[str, str]:
    """Return what the runtime directory of the pool in ``root`` is called in ``/tmp``, and among those of a login."""
    name = hashlib.sha256(os.fsencode(root)).hexdigest()[:10]
    return f"gpu-workbench-{os.geteuid()}-{name}", f"gpu-workbench-{name}"


@contextmanager
def alone(directory: Path) -> Iterator[None]:
    """Let nobody else who asks for the same be at work in ``directory`` meanwhile; whoever comes second waits."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)  # needs no file of its own: the disk may be full
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _noted(root: Path) -> Path | None:
    """Return the runtime directory that was noted in ``root``; None for what is no directory that a pool would make."""
    try:
        noted = Path((root / _RUNTIME_NOTE).read_text())
        is_sound = noted.is_absolute() and noted.name in runtime_names(root) and noted.parent.is_dir()
    except (OSError, ValueError):  # there is none, or it is no text, or none that can be a path
        return None
    return noted if is_sound else None
