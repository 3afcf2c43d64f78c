"""Two devices, one share: what arbiters have on their books reaches the ledger, and its weights reach them.

Who gets how much follows from the weights and is tested in played time (`tests/unit/gateway/test_pool_shares.py`); the
processor's time on a busy machine is nobody's to promise.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gpu_backend.arbiter import decisions
from gpu_backend.arbiter.events import TermsChanged
from gpu_backend.engine.detached import read_identity
from gpu_backend.gate import roster as rosters
from gpu_backend.gate import tally
from gpu_backend.gate.roster import Member
from gpu_backend.node import arbiter as arbiters
from gpu_backend.pool import commands, people
from gpu_backend.pool.settings import PoolSettings
from gpu_backend.pool.state import PoolState
from gpu_backend.transport.asking import ask
from gpu_backend.wire.control import CloseSession
from gpu_backend.wire.errors import PoolUnreachable
from gpu_backend.wire.views import SessionView
from tests.integration.notebook_pool import cpu_pool, wait_until
from tests.integration.test_sharing import HOG

#: Below and above what a user's weight of 1 comes where they have their share from elsewhere, and where they have not.
#: By how much hangs on what the machine's processors are to be had for.
SMALL, LARGE = 0.3, 0.7


class TwoDevices:
    """A pool of two CPU devices, seen through the files of its arbiters."""

    def __init__(self, pool: PoolState, root: Path) -> None:
        self.pool = pool
        self.root = root
        self.notebooks: list[tuple[str, subprocess.Popen[str]]] = []

    def start(self, user: str, notebooks: int = 1) -> None:
        """Have so many notebooks of ``user`` compute without an end, begun one after the other."""
        command = [sys.executable, "-c", f"import kernelproxy; kernelproxy.activate()\n{HOG}"]
        for _ in range(notebooks):
            self.notebooks.append((user, subprocess.Popen(command, env=self._environment(user), text=True)))
            wait_until(self._is_settled)

    def _is_settled(self) -> bool:
        """Tell whether those who share the devices are the notebooks that run."""
        return len(self.members()) == self._count_running()

    def _count_running(self) -> int:
        return sum(notebook.poll() is None for _, notebook in self.notebooks)

    def members(self) -> list[tuple[int, Member]]:
        """Return who shares which device."""
        found = []
        for ordinal in (0, 1):
            directory = self.directory(ordinal)
            found += [(ordinal, member) for member in rosters.read_roster(directory).members]
        return found

    def directory(self, ordinal: int) -> Path:
        return arbiters.directory_of(str(self.pool.runtime), ordinal)

    def weight(self, user: str, ordinal: int) -> float:
        """Return the weight by which a device's arbiter divides for ``user``; 0 if they are not there."""
        weights = {m.terms.user_weight for at, m in self.members() if at == ordinal and m.terms.user == user}
        return max(weights, default=0.0)

    def booked(self, ordinal: int, member: Member) -> tally.Booked:
        return tally.booked(self.directory(ordinal), member.name)

    def used(self, user: str, ordinal: int) -> float:
        """Return the GPU time of ``user`` on a device, as its arbiter has booked it, seconds."""
        here = [member for at, member in self.members() if at == ordinal and member.terms.user == user]
        return sum(self.booked(ordinal, member).used_seconds for member in here)

    def end(self, user: str, ordinal: int) -> None:
        """Close the sessions of ``user`` on a device. Their notebooks take others, say so, and end of it."""
        before, closed = self._count_running(), set[str]()
        wait_until(lambda: self._closed(lambda session: session.user == user and session.device == ordinal, closed))
        wait_until(lambda: self._count_running() == before - len(closed))
        wait_until(self._is_settled)

    def clear(self) -> None:
        for _, notebook in self.notebooks:
            notebook.kill()
            notebook.communicate()
        self.notebooks.clear()
        wait_until(lambda: self._closed(lambda session: True, set()))
        wait_until(lambda: not self.members())

    def _closed(self, which: Callable[[SessionView], bool], closed: set[str]) -> bool:
        """Close sessions, and add them to ``closed``; tell whether the gateway, which may just start, has heard it."""
        door = commands.operator_door(self.pool)
        try:
            for session in filter(which, commands.status(self.pool).sessions):
                closed.add(session.session)
                ask(door, CloseSession(0, session.session))
        except PoolUnreachable:
            return False
        return True

    def _environment(self, user: str) -> dict[str, str]:
        path = self.root / f"{user}.toml"
        if not path.exists():
            people.add_user(self.pool, user)
            key = self.root / f"{user}.key"
            people.make_key(self.pool, user, key)
            door = commands.operator_door(self.pool)
            fields = {"gateway": door.endpoint, "server_key": door.server_key.decode(), "key_file": str(key)}
            path.write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in fields.items()))
            path.chmod(0o600)
        return {**os.environ, "GPU_WORKBENCH_CONFIG": str(path)}


@pytest.fixture
def two(tmp_path: Path) -> Iterator[TwoDevices]:
    with cpu_pool(tmp_path, PoolSettings(devices="cpu", cpu_devices=2, warm_executors_per_device=0)) as pool:
        made = TwoDevices(pool, tmp_path)
        try:
            yield made
        finally:
            made.clear()


def test_who_has_a_device_to_themselves_leaves_the_other_to_others(two: TwoDevices) -> None:
    """Six notebooks of one user on both devices, beside two of another's on the second."""
    two.start("six", notebooks=6)
    wait_until(lambda: {at for at, _ in two.members()} == {0, 1})
    two.start("two", notebooks=2)
    two.end("two", 0)
    if not two.weight("two", 1):
        two.start("two")
    # All of it stands on the arbiters' books, and not in what executors say.
    wait_until(lambda: all(two.booked(at, member).used_seconds > 0 for at, member in two.members()))
    wait_until(lambda: all(two.booked(at, member).wanted_seconds > 1 for at, member in two.members()))
    wait_until(lambda: 0 < two.weight("six", 1) < SMALL and two.weight("two", 1) > LARGE)
    wait_until(lambda: two.weight("six", 0) > LARGE)

    # The arbiter divides by them; who has the small weight waits longer, and is let through all the same.
    wait_until(lambda: any(isinstance(one, TermsChanged) and one.terms.user_weight < SMALL for one in _events(two, 1)))
    used = two.used("six", 1)
    wait_until(lambda: two.used("six", 1) > used)

    # The ledger dies with its gateway. The devices go on by their last weights, and whoever comes back finds them so.
    gateway = read_identity(two.pool.process_file("gateway"))
    assert gateway is not None
    wait_until(lambda: two.weight("six", 1) < SMALL)  # now: it may have been more while we waited
    os.kill(gateway.pid, signal.SIGSTOP)
    before = {member.terms.session: two.booked(at, member).used_seconds for at, member in two.members()}
    wait_until(lambda: sum(two.booked(at, one).used_seconds for at, one in two.members()) > sum(before.values()) + 2)
    assert two.weight("six", 1) < SMALL
    os.kill(gateway.pid, signal.SIGKILL)
    wait_until(lambda: read_identity(two.pool.process_file("gateway")) not in (None, gateway))
    wait_until(lambda: 0 < two.weight("six", 1) < SMALL and two.weight("two", 1) > LARGE)

    # The first device is drained: what is left is divided evenly.
    two.end("six", 0)
    wait_until(lambda: two.weight("six", 1) > LARGE and two.weight("two", 1) > LARGE)

    # It is used again, and the new ledger sees it. One notebook alone may not keep it busy where processors are scarce,
    # and what it leaves of its share would be wanted elsewhere: as many as at first do.
    two.start("six", notebooks=3)
    wait_until(lambda: 0 < two.weight("six", 1) < SMALL and two.weight("six", 0) > LARGE)


def _events(two: TwoDevices, ordinal: int) -> list[object]:
    directory = two.directory(ordinal)
    paths = [directory / name for name in (decisions.FORMER, decisions.CURRENT)]
    return [decision.event for path in paths if path.exists() for decision in decisions.read(path)[1]]
