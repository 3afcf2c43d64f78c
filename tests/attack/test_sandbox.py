"""Native code in the sandbox of an executor gets nowhere, with whatever version of Landlock the kernel has.

Each try is made outside as well, where many succeed: so it is the sandbox that stops them, and the tries are real.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from gpu_backend.executor import sandbox
from gpu_backend.executor.sandbox import landlock

BREAKOUT = Path(__file__).with_name("breakout.py")
KINDS = {"socket": socket.SOCK_STREAM, "packets": socket.SOCK_SEQPACKET, "datagrams": socket.SOCK_DGRAM}
#: What needs no more than to be of the same user, and so must succeed outside.
SUCCEED_OUTSIDE = {
    "read a key", "list the keys", "write into the pool's state", "change the mode of a key", "list home", "list /tmp",
    "write to /tmp", "read /etc/passwd", "list /proc", "read another executor's folder", "cut a file that may be read",
    "cut a file by name", "read another's environment", "read another's command line", "look at another's descriptors",
    "signal another", "signal another executor", "signal another's thread", "signal another by descriptor",
    "signal another by a pipe", "limit another", "connect to a socket", "connect to a socket of packets",
    "connect to an abstract socket", "send to a socket by path", "send by a pair of sockets", "connect by TCP",
    "listen by TCP", "send by UDP", "leave the group", "ask the kernel by netlink", "make shared memory",
    "watch a folder",
    "make a pipe by name", "start what was written", "put all of this user last", "link a key here", "read by a link",
}  # fmt: skip

_FAST_OPEN = Path("/proc/sys/net/ipv4/tcp_fastopen")
if _FAST_OPEN.exists() and int(_FAST_OPEN.read_text()) & 1:  # where the system knows that for clients
    SUCCEED_OUTSIDE |= {"connect by sendto", "connect by sendmsg", "connect by sendmmsg"}

pytestmark = pytest.mark.skipif(not sandbox.level(), reason="this system cannot shut a process in")


class Place:
    """What is around an executor: a pool's files, a home, sockets, other processes."""

    def __init__(self, base: Path, stack: ExitStack) -> None:
        self.base = base
        self.key = base / "state" / "keys" / "operator.key"
        self.key.parent.mkdir(parents=True)
        self.home = base / "home"
        self.home.mkdir()
        self.library = base / "library.py"
        self.told: dict[str, Any] = {
            "home": str(self.home), "private": [str(base / "state"), str(base / "x")], "library": str(self.library),
            "tries": [], "address": 1 << 22, "others_own": str(base / "x" / "other"),
            "abstract": f"\0breakout-{os.getpid()}", "key": str(self.key),
        }  # fmt: skip
        (base / "x").mkdir()
        for name, kind in (
            ("socket", socket.SOCK_STREAM),
            ("packets", socket.SOCK_SEQPACKET),
            ("datagrams", socket.SOCK_DGRAM),
        ):
            self.told[name] = str(base / name)
            self._listen(stack, self.told[name], kind)
        self._listen(stack, self.told["abstract"], socket.SOCK_STREAM)
        far = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        self.told["port"] = far.getsockname()[1]
        victim = stack.enter_context(subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"]))
        stack.callback(victim.kill)
        self.told |= {"victim": victim.pid, "other": victim.pid}
        other = stack.enter_context(self.start("other", is_shut_in=True, stays=True))
        stack.callback(other.kill)
        self.read(other)
        self.told["other"] = other.pid

    @staticmethod
    def _listen(stack: ExitStack, address: str, kind: int) -> None:
        one = stack.enter_context(socket.socket(socket.AF_UNIX, kind))
        one.bind(address)
        if kind != socket.SOCK_DGRAM:
            one.listen(16)

    def renew(self) -> None:
        """Put back what a try may have spoilt."""
        self.key.write_text("a secret key")
        self.key.chmod(0o600)
        self.library.write_text("a library")

    def start(self, name: str, is_shut_in: bool, **how: object) -> subprocess.Popen[str]:
        """Start a process that tries to get out."""
        self.renew()
        tries = [] if is_shut_in else sorted(SUCCEED_OUTSIDE)
        own = {"own": str(self.base / "x" / name), "is_shut_in": is_shut_in, "tries": tries}
        own |= {"kept": 0, "stays": False, "has_gpu": False, "is_mps_client": False, **how}
        command = [sys.executable, str(BREAKOUT), json.dumps(self.told | own)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)

    @staticmethod
    def read(process: subprocess.Popen[str]) -> dict[str, str]:
        """Return what it told."""
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, "it did not come to its end"
        found: dict[str, str] = json.loads(line)
        return found


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    with TemporaryDirectory(prefix="gwb") as directory, ExitStack() as stack:
        yield Place(Path(directory), stack)


@pytest.mark.parametrize("kept", range(1, landlock.version() + 1))
def test_nothing_gets_out_with_any_version_of_landlock(place: Place, kept: int) -> None:
    _gets_nowhere(place, f"own{kept}", kept=kept)


def test_nor_through_what_cuda_needs(place: Place) -> None:
    _gets_nowhere(place, "cuda", has_gpu=True)


def test_nor_through_what_a_client_of_mps_needs(place: Place) -> None:
    """It may connect while CUDA begins, and did."""
    _gets_nowhere(place, "mps", has_gpu=True, is_mps_client=True)


def _gets_nowhere(place: Place, name: str, **how: object) -> None:
    with place.start(name, is_shut_in=True, **how) as process:
        found = place.read(process)
    assert found.pop("own folder") == "its own"
    assert found.pop("a child") == "0"
    assert [name for name, how in found.items() if how == "open"] == []
    assert place.key.read_text() == "a secret key"
    assert place.key.stat().st_mode & 0o777 == 0o600
    assert place.library.read_text() == "a library"


def test_the_same_succeeds_outside(place: Place) -> None:
    with place.start("outside", is_shut_in=False) as process:
        found = place.read(process)
    place.renew()
    assert {name for name in SUCCEED_OUTSIDE if found[name] != "open"} == set()
