"""A pool with several users for `sharing.py`, their notebooks, and what the gates' pages say of them."""

from __future__ import annotations

import json
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from time import monotonic, sleep
from types import TracebackType
from typing import Any

import msgspec

from gpu_backend.gate import roster as rosters
from gpu_backend.gate.reports import ReportView
from gpu_backend.node import launcher
from gpu_backend.pool import commands, people, state
from gpu_backend.pool.settings import PoolSettings
from kernelproxy.settings import MIRROR_VARIABLE

#: What runs as a notebook.
WORKER = Path(__file__).parent / "sharing_worker.py"
#: How long a notebook may take from its start to its first kernel, seconds.
_READY_SECONDS = 60.0


class Notebook:
    """A process of one user with remote CuPy."""

    def __init__(self, user: str, device: str, environment: dict[str, str]) -> None:
        self.user = user
        command = [sys.executable, str(WORKER), device]
        self._process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._answers: queue.Queue[dict[str, Any] | None] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def tell(self, do: str, **order: Any) -> None:
        """Have it do something; its answer comes when that is done."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": do, **order}) + "\n")
        self._process.stdin.flush()

    def answer(self, deadline: float) -> dict[str, Any]:
        """Return what it has to say.

        Raises
        ------
        RuntimeError
            If it died, or says nothing until ``deadline``.
        """
        try:
            answer = self._answers.get(timeout=max(0.1, deadline - monotonic()))
        except queue.Empty:
            raise RuntimeError(f"a notebook of {self.user} did not answer in time") from None
        if answer is None:
            raise RuntimeError(f"a notebook of {self.user} died")
        return answer

    def end(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            try:
                self._answers.put(json.loads(line))
            except ValueError:
                print(line, end="", file=sys.stderr)
        self._answers.put(None)


class SharedPool:
    """A pool under one policy, with one notebook for each name in ``owners``.

    Attributes
    ----------
    notebooks
        In the order of ``owners``.
    device_kind
        "cuda" or "cpu".
    devices
        How many the pool has.
    """

    def __init__(
        self, device: str, policy: str, owners: Iterable[str], is_in_order: bool = False, **settings: Any
    ) -> None:
        """Have one owner's notebooks come behind another's if ``is_in_order``; ``settings`` replace ours."""
        self._is_in_order = is_in_order
        self._root = Path(tempfile.mkdtemp(prefix="gw-"))
        self._state = state.at(self._root / "pool")
        self._owners = list(owners)
        usual = {"sessions_per_device": 64, "max_sessions_per_user": 0, "warm_executors_per_device": 1}
        self._settings = PoolSettings.model_validate({**usual, "devices": device, "policy": policy, **settings})
        self.policy = policy
        self.notebooks: list[Notebook] = []
        self._users: dict[str, str] = {}  # by key
        self._found: list[tuple[ReportView, str]] = []
        self._used: dict[ReportView, float] = {}  # by page, seconds

    def __enter__(self) -> SharedPool:
        try:
            commands.embedded(self._state, self._settings)
            devices = commands.status(self._state).devices
            self.device_kind, self.devices = devices[0].kind, len(devices)
            batches = [[*batch] for _, batch in groupby(self._owners)] if self._is_in_order else [self._owners]
            for batch in batches:
                deadline = monotonic() + _READY_SECONDS
                fresh = [Notebook(owner, self.device_kind, self._environment(owner)) for owner in batch]
                self.notebooks += fresh
                for notebook in fresh:
                    notebook.answer(deadline)
        except BaseException:
            for log in sorted(self._state.logs.glob("*.log")):
                print(f"the end of {log.name}:\n{log.read_text(errors='replace')[-2_000:]}", file=sys.stderr)
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def _end(self) -> None:
        for notebook in self.notebooks:
            notebook.end()
        commands.down(self._state)
        shutil.rmtree(self._root, ignore_errors=True)

    def of(self, user: str, number: int = 0) -> Notebook:
        """Return one of a user's notebooks."""
        return [notebook for notebook in self.notebooks if notebook.user == user][number]

    def begin(self, orders: list[tuple[Notebook, dict[str, Any]]], seconds: float, start: float = 0.0) -> float:
        """Have notebooks do something at the same time for ``seconds``, from ``start`` or at once; return the start."""
        start = start or monotonic() + 0.3
        for notebook, order in orders:
            notebook.tell(**{"start": start, "until": start + seconds, **order})
        return start

    def run(
        self, orders: list[tuple[Notebook, dict[str, Any]]], seconds: float, limit_seconds: float
    ) -> tuple[list[dict[str, Any]], list[tuple[float, dict[str, float]]]]:
        """Have notebooks do something at the same time for ``seconds``; return their answers, and each user's GPU time.

        GPU time is what the executors' pages say, sampled twenty times a second.
        """
        start = self.begin(orders, seconds)
        samples = []
        while monotonic() < start + seconds:
            sleep(0.05)
            if monotonic() >= start:
                samples.append((monotonic() - start, self.used_by_user()))
        deadline = start + seconds + limit_seconds
        return [notebook.answer(deadline) for notebook, _ in orders], samples

    def placed(self) -> dict[str, list[int]]:
        """Return how many notebooks each user has on each device."""
        found = {user: [0] * self.devices for user in dict.fromkeys(self._owners)}
        for session in commands.status(self._state).sessions:
            found[session.user][session.device] += 1
        return found

    def one_of_each(self) -> list[Notebook]:
        """Return a notebook of each device."""
        device_of = {session.session: session.device for session in commands.status(self._state).sessions}
        found: dict[int, Notebook] = {}
        for notebook in self.notebooks:
            notebook.tell("session")
            found.setdefault(device_of[notebook.answer(monotonic() + _READY_SECONDS)["session"]], notebook)
        return list(found.values())

    def used_by_user(self) -> dict[str, float]:
        """Return each user's GPU time so far, seconds."""
        used = dict.fromkeys(self._owners, 0.0)
        for page, user in self._pages():
            report = page.report()
            if report is not None:  # else its writer was put to sleep in the middle: what it said last counts
                self._used[page] = report.used_ns / 1e9
            used[user] += self._used.get(page, 0.0)
        return used

    def _pages(self) -> list[tuple[ReportView, str]]:
        if len(self._found) < len(self._owners):
            self._found = []
            for directory in launcher.directories(str(self._state.runtime)):
                config, order = launcher.config_in(directory), launcher.assignment_in(directory)
                process = launcher.process_in(directory)
                if config is not None and order is not None and process is not None:
                    page = ReportView(process.pid, config.descriptors.report)
                    self._found.append((page, self._users[order.client_key]))
        return self._found

    def set_terms(self, terms: dict[str, dict[str, Any]]) -> None:
        """Change users' terms, in the roster that the arbiter reads: nobody may come or go meanwhile."""
        path = Path(self._state.runtime) / "a" / "0" / rosters.ROSTER
        roster = rosters.read_roster(path.parent)
        members = []
        for member in roster.members:
            # A gateway that names no users leaves their keys in their place.
            changes = terms.get(self._users.get(member.terms.user, member.terms.user), {})
            members.append(msgspec.structs.replace(member, terms=msgspec.structs.replace(member.terms, **changes)))
        rosters.write(path, rosters.Roster(tuple(members)))
        sleep(0.2)

    def arbiter_seconds(self) -> float:
        """Return the processor time that the arbiter has used."""
        process = json.loads((Path(self._state.runtime) / "a" / "0" / rosters.PROCESS).read_text())["pid"]
        return processor_seconds(process)

    def _environment(self, user: str) -> dict[str, str]:
        path = self._root / f"{user}.toml"
        if not path.exists():
            people.add_user(self._state, user)
            key = self._root / f"{user}.key"
            self._users[people.make_key(self._state, user, key)] = user
            door = commands.operator_door(self._state)
            fields = {"gateway": door.endpoint, "server_key": door.server_key.decode(), "key_file": str(key)}
            path.write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in fields.items()))
            path.chmod(0o600)
        # A number that the notebook knows by itself asks for no device.
        return {**os.environ, "GPU_WORKBENCH_CONFIG": str(path), "PYTHONUNBUFFERED": "1", MIRROR_VARIABLE: "off"}


def processor_seconds(pid: int) -> float:
    """Return the processor time of a process, seconds."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9
