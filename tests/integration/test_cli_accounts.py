"""Accounts, shares and quotas from the terminal, in a pool that really computes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gpu_backend.engine.detached import read_identity
from gpu_backend.node import launcher, shares
from gpu_backend.pool import people, state
from gpu_backend.pool.state import PoolState
from gpu_backend.wire.control import Terms
from gpu_backend.wire.op_classes import OpClass
from gpu_backend.wire.orders import Assign
from tests.integration.notebook_pool import sessions, wait_until
from tests.integration.terminal import Terminal, operating, read_to_end

#: Computes at each line that it reads, and says so.
_PROGRAM = """
import sys
import cupy as cp
x = cp.ones(1_000_000)
for line in sys.stdin:
    for _ in range(20):
        x = cp.sqrt(x + 1)
    print(float(x[0]), flush=True)
"""


@pytest.fixture(scope="module")
def operator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    with operating(tmp_path_factory.mktemp("operator")) as terminal:
        yield terminal


@pytest.fixture(scope="module")
def pool(operator: Terminal) -> PoolState:
    return state.at(operator.home / "state" / "gpu-workbench" / "pool")


@pytest.fixture(scope="module")
def ada(operator: Terminal, pool: PoolState, tmp_path_factory: pytest.TempPathFactory) -> Terminal:
    """Another person on another machine."""
    home = tmp_path_factory.mktemp("ada")
    operator.json("pool", "users", "add", "ada")
    people.make_key(pool, "ada", home / "ada.key")
    door = operator.json("pool", "keys")
    terminal = Terminal(home)
    terminal.json("connect", door["gateway"], "--server-key", door["server_key"], "--key-file", str(home / "ada.key"))
    return terminal


def serving(pool: PoolState) -> list[tuple[Path, Assign]]:
    """Return the directories of the executors that run and serve a session, and what each of them was told."""
    found = [(one, launcher.assignment_in(one)) for one in launcher.directories(str(pool.runtime))]
    return [(one, order) for one, order in found if order is not None and launcher.process_in(one) is not None]


@pytest.fixture(autouse=True)
def nothing_of_the_test_before(pool: PoolState) -> None:
    """A session is closing until its executor has ended, which may be later than the program that it was for."""
    wait_until(lambda: not sessions(pool) and not serving(pool))


class Program:
    """A person's program that computes when it is told to."""

    def __init__(self, terminal: Terminal, *options: str) -> None:
        command = [sys.executable, "-m", "workbench", "run", *options, "-c", _PROGRAM]
        self._process = subprocess.Popen(
            command, env=terminal.variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def compute(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline(), "the program has ended"

    def end(self) -> None:
        self._process.communicate()


@contextmanager
def program(terminal: Terminal, *options: str) -> Iterator[Program]:
    running = Program(terminal, *options)
    try:
        running.compute()
        yield running
    finally:
        running.end()


def used(terminal: Terminal, user: str) -> float:
    rows = terminal.json("pool", "usage")["rows"]
    return sum(row["gpu_seconds"] for row in rows if row["user"] == user)


def test_what_was_used_is_told_to_each_in_their_own_way(operator: Terminal, ada: Terminal) -> None:
    with program(ada, "--class", "best-effort"):
        wait_until(lambda: used(operator, "ada") > 0)
        wait_until(lambda: operator.json("pool", "top")["devices"][0]["used_bytes"] > 0)
        top = operator.json("pool", "top")
        (session,) = top["sessions"]
        assert (session["user"], session["kind"], session["label"]) == ("ada", "best-effort", "")
        assert session["used_bytes"] >= 8_000_000
        assert top["devices"][0]["used_bytes"] >= 8_000_000
        (own,) = ada.json("pool", "top")["sessions"]
        assert own["session"] == session["session"]
    (row,) = [row for row in operator.json("pool", "usage", "--by", "session")["rows"] if row["user"] == "ada"]
    assert row["session"] == session["session"]
    assert row["peak_bytes"] >= 8_000_000
    assert row["received_bytes"] > 0
    assert [row["user"] for row in ada.json("pool", "usage", "--since", "today")["rows"]] == ["ada"]
    with program(operator):
        wait_until(lambda: len(operator.json("pool", "usage")["rows"]) == 2)
    assert sorted(row["user"] for row in ada.json("pool", "usage")["rows"]) == ["", "ada"]
    assert "others" in ada.run("pool", "usage").stdout
    assert "GPU time" in operator.run("pool", "top").stdout
    by_class = {row["op_class"]: row["gpu_seconds"] for row in ada.json("pool", "usage", "--by", "class")["rows"]}
    assert sum(by_class.values()) > 0
    assert by_class.keys() <= set(OpClass)
    shown = operator.run("pool", "usage", "--by", "class").stdout
    assert "op class" in shown
    assert "peak" not in shown


def test_top_goes_on_in_a_terminal_until_it_is_interrupted(operator: Terminal) -> None:
    with operator.screen("pool", "top") as (watching, screen):
        see_two_screens(screen)
        watching.send_signal(signal.SIGINT)
        read_to_end(screen)
        assert watching.wait(90) == 130


def test_q_leaves_top_which_outlives_a_gateway(operator: Terminal, pool: PoolState) -> None:
    with operator.screen("pool", "top") as (watching, screen):
        before = termios.tcgetattr(screen)
        see_two_screens(screen)
        gateway = read_identity(pool.process_file("gateway"))
        assert gateway is not None
        os.kill(gateway.pid, signal.SIGKILL)
        see_two_screens(screen)
        os.write(screen, b"q")
        read_to_end(screen)
        assert watching.wait(90) == 0
        assert termios.tcgetattr(screen)[3] & termios.ECHO == before[3] & termios.ECHO
    wait_until(lambda: operator.run("pool", "status").returncode == 0)


def see_two_screens(screen: int) -> None:
    """Watch until all has been drawn again at least once; a screen says "busy" twice."""
    shown = b""
    while shown.count(b"busy") < 6:
        shown += os.read(screen, 65536)


def test_what_is_piped_is_not_cut_to_the_width_of_a_terminal(operator: Terminal, ada: Terminal) -> None:
    narrow = Terminal(operator.home)
    narrow.variables["COLUMNS"] = "40"
    with program(ada):
        (session,) = operator.json("pool", "top")["sessions"]
        lines = narrow.run("pool", "top").stdout.splitlines()
        (line,) = [line for line in lines if session["session"] in line]
        assert "ada" in line
        assert f"{session['node']}/{session['device']}" in line


def test_a_killed_gateway_loses_nothing_and_counts_nothing_twice(
    operator: Terminal, ada: Terminal, pool: PoolState
) -> None:
    with program(ada) as running:
        for _ in range(2):
            running.compute()
            gateway = read_identity(pool.process_file("gateway"))
            assert gateway is not None
            os.kill(gateway.pid, signal.SIGKILL)
            wait_until(lambda: operator.run("pool", "status").returncode == 0)
        running.compute()

        def is_whole() -> bool:
            (session,) = operator.json("pool", "top")["sessions"]
            rows = operator.json("pool", "usage", "--by", "session")["rows"]
            booked = [row["gpu_seconds"] for row in rows if row["session"] == session["session"]]
            # What the executor itself has counted since it was assigned, and what all gateways have booked of it.
            return bool(booked) and booked[0] == pytest.approx(session["gpu_seconds"]) and booked[0] > 0

        wait_until(is_whole)


def test_shares_change_while_a_session_runs(operator: Terminal, ada: Terminal, pool: PoolState) -> None:
    def terms() -> list[Terms]:
        """Return what the node has noted for the sessions that it serves."""
        return [shares.noted(*one).terms for one in serving(pool)]

    with program(ada):
        assert [one.user_weight for one in terms()] == [1.0]
        told = operator.json("pool", "shares", "set", "user", "ada", "--weight", "3", "--group", "lab")["shares"]
        (hers,) = [one for one in told if one["name"] == "ada"]
        assert (hers["weight"], hers["group"], hers["set"]) == (3.0, "lab", ["weight"])
        operator.json("pool", "shares", "set", "group", "lab", "--weight", "2")
        wait_until(lambda: [(one.user_weight, one.group, one.group_weight) for one in terms()] == [(3.0, "lab", 2.0)])
        operator.json("pool", "shares", "set", "user", "ada", "--weight", "default", "--group", "")
        wait_until(lambda: [(one.user_weight, one.group) for one in terms()] == [(1.0, "")])


def test_a_quota_holds_at_once_and_says_whose_it_is(operator: Terminal, ada: Terminal, pool: PoolState) -> None:
    quotas = operator.json(
        "pool", "quotas", "set", "user", "ada", "--gpu-seconds-per-day", "0.000001", "--memory", "1GiB"
    )
    (hers,) = [one for one in quotas["quotas"] if one["name"] == "ada"]
    assert (hers["gpu_seconds_per_day"], hers["memory_bytes"]) == (0.000001, 1 << 30)
    refused = ada.run("run", "--memory", "500MB", "-c", "import cupy as cp; cp.ones(1)")
    assert refused.returncode == 1
    assert "GPU seconds that may be used in a day. Wait for the next day" in refused.stderr
    told = ada.json("pool", "usage")["quotas"]
    assert {(one["whose"], one["what"]) for one in told} >= {("you", "GPU seconds per day"), ("you", "memory bytes")}
    operator.json("pool", "quotas", "set", "user", "ada", "--gpu-seconds-per-day", "default")
    done = ada.run("run", "-c", "import cupy as cp; cp.ones(1); print(cp.cuda.runtime.memGetInfo()[1])")
    assert done.stdout == f"{1 << 30}\n", done.stderr  # who asks for no amount has what is left
    wait_until(lambda: not sessions(pool))  # it holds that until the pool has heard of its end
    done = ada.run("run", "--memory", "500MB", "-c", "import cupy as cp; print(float(cp.ones(3).sum()))")
    assert done.stdout == "3.0\n", done.stderr
    operator.json("pool", "quotas", "set", "user", "ada", "--memory", "default")
    refused = ada.run("run", "--class", "production", "-c", "import cupy as cp; cp.ones(1)")
    assert "You asked for the class production; in this pool interactive is the largest" in refused.stderr


def test_one_clear_sentence_each(operator: Terminal, tmp_path: Path) -> None:
    for words, said in (
        (("shares", "set"), "shares set user NAME --weight"),
        (("shares", "set", "user", "nobody", "--weight", "2"), "no user 'nobody'"),
        (("shares", "set", "user", "ada", "--weight", "heavy"), "weight is a number"),
        (("shares", "set", "user", "ada", "--weight", "0"), "above 0"),
        (("shares", "set", "user", "ada", "--largest-class", "fast"), "no class"),
        (("shares", "set", "group", "lab", "--largest-limit", "2"), "between 0 and 1"),
        (("shares", "set", "group", "lab", "--group", "other"), "a group to none"),
        (("quotas", "set", "user", "ada", "--memory", "much"), "no amount of memory"),
        (("quotas", "set", "user", "ada"), "quotas set user NAME --sessions"),
        (("usage", "--since", "never"), "no day"),
    ):
        done = operator.run("pool", *words)
        status = 1 if "nobody" in words else 2  # the words alone do not tell whom there is
        assert (done.returncode, said in done.stderr) == (status, True), done.stderr
        assert "Traceback" not in done.stderr
    assert "workbench connect" in Terminal(tmp_path).run("pool", "usage").stderr


def test_accounts_can_be_read_while_the_pool_is_down(operator: Terminal) -> None:
    before = operator.json("pool", "usage")["rows"]
    operator.run("pool", "down")
    assert json.dumps(operator.json("pool", "usage")["rows"]) == json.dumps(before)
