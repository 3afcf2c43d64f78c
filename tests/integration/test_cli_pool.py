"""A pool from the terminal: up, users and keys, connecting, doctor, down. Each command is a process of its own."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpu_backend.engine.detached import read_identity
from gpu_backend.pool import state
from tests.integration.terminal import Terminal, operating, read_to_end


@pytest.fixture(scope="module")
def operator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    with operating(tmp_path_factory.mktemp("operator"), "--name", "lab") as terminal:
        yield terminal


def test_status_tells_devices_and_the_way_in(operator: Terminal) -> None:
    told = operator.json("pool", "status")
    assert told["pool"] == "lab"
    assert told["gateway"].startswith("tcp://127.0.0.1:")
    assert [device["kind"] for device in told["devices"]] == ["cpu"]
    for_people = operator.run("pool", "status").stdout
    assert f"workbench connect {told['gateway']} --server-key='{told['server_key']}'" in for_people


def test_the_line_to_send_to_users_is_one_line_in_a_narrow_terminal(operator: Terminal) -> None:
    told = operator.json("pool", "status")
    with operator.screen("pool", "status", columns=80) as (showing, screen):
        shown = read_to_end(screen)
        assert showing.wait(90) == 0
    line = f"workbench connect {told['gateway']} --server-key='{told['server_key']}'"
    assert len(line) > 80
    assert line in shown


@pytest.mark.parametrize(
    "command", ["doctor", "pool status", "pool users list", "pool keys list", "pool shares list", "pool quotas list"]
)
def test_nothing_is_cut_in_a_narrow_terminal(operator: Terminal, command: str) -> None:
    with operator.screen(*command.split(), columns=80) as (_, screen):
        lines = re.sub("\x1b\\[[0-9;]*m", "", read_to_end(screen)).splitlines()
    assert len(lines) > 1
    assert not [line for line in lines if "…" in line]
    assert not [line for line in lines if len(line) > 80 and "workbench connect" not in line]


def test_the_operators_own_notebooks_use_it(operator: Terminal) -> None:
    findings = {one["subject"]: one for one in operator.json("doctor")["findings"]}
    assert findings["session"]["state"] == "ok"
    assert "granted and answered" in findings["session"]["found"]


def test_a_new_user_gets_in_and_out_again(operator: Terminal, tmp_path: Path) -> None:
    door = operator.json("pool", "keys")
    ada = Terminal(tmp_path)
    words = ("connect", door["gateway"], "--server-key", door["server_key"])

    refused = ada.run(*words)
    assert refused.returncode == 1
    (line,) = [line for line in refused.stderr.splitlines() if line.startswith("Your public key")]
    (public,) = shlex.split(line.partition(": ")[2])

    operator.json("pool", "users", "add", "ada", "--key", public)
    connected = ada.json(*words)
    assert connected["user"] == "ada"
    assert Path(connected["key_file"]).stat().st_mode & 0o077 == 0
    assert public not in Path(connected["key_file"]).read_text().splitlines()[1]
    done = ada.run("run", "-c", "import cupy as cp; print(float(cp.ones(4).sum()))")
    assert done.stdout == "4.0\n", done.stderr

    keys = operator.json("pool", "keys", "revoke", "--key", public)["keys"]
    assert [key["revoked_at"] is None for key in keys if key["user"] == "ada"] == [False]
    findings = ada.json("doctor", status=1)["findings"]
    assert [(one["subject"], one["state"]) for one in findings if one["state"] == "problem"] == [("pool", "problem")]


def test_users_come_whole_and_go_whole(operator: Terminal, tmp_path: Path) -> None:
    bad = operator.run("pool", "users", "add", "bad", "--key", "abc")
    assert (bad.returncode, "no public key" in bad.stderr) == (1, True)
    assert "bad" not in {one["name"] for one in operator.json("pool", "users")["users"]}

    operator.json("pool", "users", "add", "bob")
    operator.json("pool", "keys", "make", "--user", "bob", "--file", str(tmp_path / "bob.key"))
    (public,) = [key["public"] for key in operator.json("pool", "keys")["keys"] if key["user"] == "bob"]
    operator.json("pool", "quotas", "set", "user", "bob", "--sessions", "1")
    operator.json("pool", "keys", "revoke", "--key", public)
    assert "revoked 20" in operator.run("pool", "keys").stdout
    again = operator.run("pool", "keys", "add", "--user", "bob", "--key", public)
    assert "keys restore --key=" in again.stderr
    keys = operator.json("pool", "keys", "restore", "--key", public)["keys"]
    assert [key["revoked_at"] for key in keys if key["user"] == "bob"] == [None]

    operator.json("pool", "users", "remove", "bob")
    for words, part in ((("users",), "users"), (("shares",), "shares"), (("quotas",), "quotas")):
        assert "bob" not in {one["name"] for one in operator.json("pool", *words)[part]}
    assert "bob" not in {key["user"] for key in operator.json("pool", "keys")["keys"]}


def test_who_has_no_pool_is_told_so_and_gets_none(tmp_path: Path) -> None:
    stranger = Terminal(tmp_path)
    for words in (("users",), ("keys",), ("shares",), ("quotas",), ("status",), ("users", "add", "ada")):
        done = stranger.run("pool", *words)
        assert (done.returncode, "There is no pool" in done.stderr) == (1, True), done.stderr
    assert list(tmp_path.iterdir()) == []


def test_one_clear_sentence_each(operator: Terminal, tmp_path: Path) -> None:
    stranger = Terminal(tmp_path)
    assert "workbench pool up" in stranger.run("pool", "status").stderr
    assert "workbench connect" in stranger.run("connect").stderr
    assert "--server-key" in operator.run("connect", "tcp://127.0.0.1:9").stderr
    assert "40 characters" in operator.run("pool", "keys", "add", "--user", "ada", "--key", "short").stderr
    assert "NAME" in operator.run("pool", "users", "add").stderr
    assert "pool.toml" in operator.run("pool", "up", "--name", "other").stderr
    for words in (("pool", "status"), ("connect",)):
        done = stranger.run(*words)
        assert done.returncode == 1
        assert "Traceback" not in done.stderr


def test_wrong_usage_has_status_two(operator: Terminal) -> None:
    assert operator.run("nonsense").returncode == 2
    assert operator.run("pool").returncode == 2


def test_down_leaves_nothing_and_may_be_repeated(operator: Terminal) -> None:
    own = state.at(operator.home / "state" / "gpu-workbench" / "pool")
    names = ("supervisor", "gateway", "agent")
    running = [read_identity(own.process_file(name)) for name in names]
    assert all(running)
    assert operator.json("pool", "down")["is_up"] is False
    assert not [identity for identity in running if identity is not None and identity.is_running]
    assert operator.run("pool", "down").returncode == 0
