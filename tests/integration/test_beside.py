"""What `%catalog try` has a reader run: a policy, a program and its neighbour, on a pool that is gone afterwards."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

import catalog
from gpu_backend.wire.errors import PoolRefusal
from tests.integration.notebook_pool import environment, wait_until
from workbench import beside as besides
from workbench.beside import Beside, Side, beside

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with environment(tmp_path):
        monkeypatch.setattr(besides.tempfile, "tempdir", None)
        yield


def test_a_program_is_seen_alone_and_beside_its_neighbour_and_the_pool_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    roots: list[Path] = []

    def made(**name: str) -> str:
        roots.append(Path(tempfile.mkdtemp(**name)))
        return str(roots[-1])

    monkeypatch.setattr(besides, "tempfile", SimpleNamespace(mkdtemp=made))
    seen = beside(
        "reef", ours={"class": "production"}, theirs={"class": "best-effort"}, does="ask", seconds=1.0, device="cpu"
    )
    for side in (seen.alone, seen.ours, seen.theirs):
        assert side.turns_per_second > 0
        assert math.isfinite(side.median_seconds)
        assert side.gpu_part >= 0
    said = str(seen).splitlines()
    assert said[0] == "reef, in a pool of its own on this machine (the CPU device):"
    assert said[1].startswith("  median time of a short operation of ours (class production): ")
    assert " beside theirs (class best-effort), " in said[1]
    assert "say nothing of a GPU" in str(seen)
    assert roots
    assert not any(root.exists() for root in roots)


def test_what_cannot_be_tried_is_refused_in_a_sentence() -> None:
    with pytest.raises(PoolRefusal, match="there is no policy 'tsg'; installed are "):
        beside("tsg", device="cpu")
    with pytest.raises(PoolRefusal, match="A program can work, pause, ask, not 'sleep'"):
        beside("tgs", does="sleep")  # type: ignore[arg-type]


def test_a_program_that_ends_says_why() -> None:
    with pytest.raises(PoolRefusal, match=r"ended\. It said: [\s\S]*production, interactive or best-effort"):
        beside("tgs", ours={"class": "prodction"}, device="cpu")


def test_what_is_multiplied_is_chosen_by_the_device_that_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without a GPU is not known as one before the pool is up: 2048 x 2048 would take it seconds a turn."""
    edges: list[int] = []

    class Stop(Exception):
        pass

    def program(pool: object, does: str, edge: int, terms: object) -> None:
        edges.append(edge)
        raise Stop

    monkeypatch.setattr(besides, "_Program", program)
    monkeypatch.setattr(besides._OwnPool, "begin", lambda self: "cpu")
    with pytest.raises(Stop):
        beside("tgs", device="auto")
    assert edges == [besides._EDGES["cpu"]]


def test_the_first_is_watched_beside_the_second_from_when_both_are_at_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program takes seconds to its first turn: the other would be as quick as alone for most of what is watched."""
    happened: list[str] = []

    class Played:
        def __init__(self, pool: object, does: str, edge: int, terms: object) -> None:
            self.name = "theirs" if happened else "ours"

        def begin(self) -> None:
            happened.append(f"{self.name} begin")

        def wait_for_turns(self, count: int) -> None:
            happened.append(f"{self.name} work")

        def mark(self) -> None:
            happened.append(f"{self.name} watched")

        def since(self, mark: None) -> Side:
            return Side(1.0, 1.0, 0.5)

        def end(self) -> None:
            pass

    monkeypatch.setattr(besides, "_Program", Played)
    monkeypatch.setattr(besides._OwnPool, "begin", lambda self: "cpu")
    beside("tgs", seconds=0.0)
    assert happened == ["ours begin", "ours watched", "theirs begin", "theirs work", "ours watched", "theirs watched"]


@pytest.mark.parametrize("cut", ["", "7.5", "7.5 ", "7.5 0.2"])
def test_a_turn_that_was_told_in_part_is_none(cut: str) -> None:
    """A program is killed while it writes; where its output is not buffered, a line goes word by word."""
    program = besides._Program(SimpleNamespace(gpu_seconds=dict), "pause", 10, {})  # type: ignore[arg-type]
    program._read(["5.5 0.25\n", "6.5 0.5\n", *filter(None, [cut])])
    assert program._turns == [(5.5, 0.25), (6.5, 0.5)]


def test_a_clients_installation_is_told_what_it_lacks() -> None:
    code = "import sys; sys.modules['pydantic'] = None; import workbench.beside"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False).stderr
    assert told.splitlines()[-1].endswith("Run `pip install 'gpu-workbench[pool]'`.")


_TRIAL = """
import pathlib, sys, time
from workbench import beside as besides
def watched(programs, seconds, before=besides._watched):
    sides = before(programs, 0.1)
    if len(programs) == 2:
        pathlib.Path(sys.argv[1]).touch()
        time.sleep(3600)
    return sides
besides._watched = watched
besides.beside("tgs", device="cpu")
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_programs_and_pool_end_with_the_cell_and_with_its_kernel(how: signal.Signals, tmp_path: Path) -> None:
    reached = tmp_path / "beside"
    cell = subprocess.Popen([sys.executable, "-c", _TRIAL, str(reached)], env={**os.environ, "TMPDIR": str(tmp_path)})
    try:
        wait_until(lambda: reached.exists() or cell.poll() is not None)
        (root,) = tmp_path.glob("gw-*")
        assert len(_processes_of(root) - {cell.pid}) >= 3, "its programs and its pool were not found"
        cell.send_signal(how)
        assert cell.wait() != 0
        wait_until(lambda: not _processes_of(root))
    finally:
        cell.kill()
        cell.wait()
    assert root.exists() == (how == signal.SIGKILL)


def _processes_of(root: Path) -> set[int]:
    """Return the processes that name ``root`` in their command line or environment."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            said = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
            found |= {int(process.name)} if str(root).encode() in said else set()
    return found


_POLICIES = ("tgs", "antman", "reef", "paella", "gemini", "kubeshare", "gaiagpu")
#: Systems that are carried by a policy of another name.
_CARRIED_BY = {
    "nvshare": ["fifo"],
    "hami": ["gaiagpu"],
    "nvidia-time-slicing": ["driver"],
    "csur2017-survey": ["fifo", "fair_share"],
    "xsched": ["reef"],
}


@pytest.mark.parametrize(("system", "policies"), [*((name, [name]) for name in _POLICIES), *_CARRIED_BY.items()])
def test_a_policys_cell_sets_that_policy_and_prints_what_it_does(
    system: str, policies: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tried: list[str] = []

    def played(policy: str, ours: object = None, theirs: object = None, does: str = "work", **more: object) -> Beside:
        tried.append(policy)
        assert does in besides._TURNS
        return Beside(policy, Side(2.0, 0.5, 0.5), Side(1.0, 1.0, 0.3), Side(1.0, 1.0, 0.2), does)

    monkeypatch.setattr(besides, "beside", played)
    exec(catalog.trial(system).cell, {})
    assert tried == policies
    assert "50% of its rate alone" in capsys.readouterr().out


def test_every_cell_about_several_sessions_starts_them_itself() -> None:
    """A reader has one notebook open: a cell that is to be run in several shows them nothing."""
    for system in catalog.systems():
        cell = catalog.trial(system.id).cell
        shares = any(name.startswith("policy:") and name != "policy:driver" for name in system.pool.carriers)
        assert not cell or "beside(" in cell or not shares, system.id
