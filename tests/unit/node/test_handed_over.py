"""What agent, launcher, executor and arbiter hand each other has one schema each: a word it lacks is told by name."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gpu_backend.engine import detached
from gpu_backend.engine.detached import ProcessId
from gpu_backend.executor import config as executor_config
from gpu_backend.executor.config import Descriptors, ExecutorConfig
from gpu_backend.executor.sandbox.walls import Walls
from gpu_backend.gate import roster
from gpu_backend.gate.roster import ArbiterConfig, Member, Roster
from gpu_backend.gate.terms import SessionTerms
from gpu_backend.node import launcher, shares
from gpu_backend.node import settings as node_settings
from gpu_backend.node.inventory import Found
from gpu_backend.node.settings import NodeSettings
from gpu_backend.node.shares import Share
from gpu_backend.wire.control import Terms
from gpu_backend.wire.errors import PoolRefusal
from gpu_backend.wire.orders import Assign

EXECUTOR = ExecutorConfig(
    device_kind="cpu", own="/own", walls=Walls(), agent_key="k" * 40,
    endpoints=(), descriptors=Descriptors(local=3, control=4, far=5, report=6), secret="00", certificate="00",
)  # fmt: skip
NODE = NodeSettings(
    node="n", gateway="ipc://g", gateway_key="k" * 40, key_file="k", runtime_dir="r", log_dir="l", cache_dir="c"
)
ROSTER = Roster((Member(SessionTerms(session="s/1", user="u"), 1, 2, "/control", 6),))
#: Each thing that one process writes and another one reads, with the way to what is in it.
HANDED = [
    (EXECUTOR, ()), (EXECUTOR, ("descriptors",)), (EXECUTOR, ("walls",)), (NODE, ()), (Share("u", Terms()), ()),
    (ArbiterConfig(policy="fifo"), ()), (ROSTER, ()), (ROSTER, ("members", 0)), (ROSTER, ("members", 0, "terms")),
    (Found(0, "cpu", "a CPU", "cpu-0", 1), ()), (ProcessId(1, 2), ()),
]  # fmt: skip


def misspelt(value: msgspec.Struct, *way: Any) -> bytes:
    """Return ``value`` as it is written, with a word that nobody knows in what lies behind ``way``."""
    written = part = json.loads(msgspec.json.encode(value))
    for step in way:
        part = part[step]
    part["gaet"] = 1
    return json.dumps(written).encode()


@pytest.mark.parametrize(("value", "way"), HANDED, ids=lambda one: type(one).__name__ if one else "itself")
def test_a_word_that_nobody_knows_is_told_by_name(value: msgspec.Struct, way: tuple[Any, ...]) -> None:
    assert msgspec.json.decode(msgspec.json.encode(value), type=type(value)) == value
    with pytest.raises(msgspec.ValidationError, match="unknown field `gaet`"):
        msgspec.json.decode(misspelt(value, *way), type=type(value))


@pytest.mark.parametrize(
    ("module", "value", "name", "option"),
    [
        ("executor", EXECUTOR, executor_config.CONFIG, ()),
        ("node", NODE, node_settings.CONFIG, ("--state",)),
        ("arbiter", ArbiterConfig(policy="fifo"), roster.CONFIG, ()),
    ],
)
def test_a_process_that_is_told_such_a_word_says_so_and_does_not_run(
    module: str, value: msgspec.Struct, name: str, option: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(misspelt(value))
    command = [sys.executable, "-m", f"gpu_backend.{module}", *option, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, env={**os.environ}, check=False)
    assert (done.returncode, "unknown field `gaet`" in done.stderr) == (2, True), done.stderr
    assert "Traceback" not in done.stderr


def test_who_finds_an_executor_again_says_what_it_does_not_know_of_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    order = Assign("s", 1, "k" * 40, 5, 60.0)
    assert (launcher.config_in(tmp_path), launcher.assignment_in(tmp_path)) == (None, None)
    assert shares.noted(tmp_path, order) == Share(order.client_key, Terms())
    assert not caplog.records, "what was never written is missed by nobody"
    (tmp_path / executor_config.CONFIG).write_bytes(misspelt(EXECUTOR))
    shares.note(tmp_path, Share("u", Terms(user_weight=3.0)))
    (share,) = tmp_path.glob("*share*")
    share.write_bytes(misspelt(Share("u", Terms(user_weight=3.0))))
    with caplog.at_level(logging.ERROR):
        assert launcher.config_in(tmp_path) is None
        assert shares.noted(tmp_path, order) == Share(order.client_key, Terms())
    assert [("gaet" in one, "ordinary terms" in one) for one in caplog.messages] == [(True, False), (True, True)]


def test_an_executor_notes_itself_as_its_launcher_does(tmp_path: Path) -> None:
    """Either may have died before it did."""
    executor_config.note_process(tmp_path)
    (noted,) = tmp_path.iterdir()
    words = noted.read_bytes()
    detached.write_identity(noted, ProcessId.mine())
    assert (noted.name, words) == (executor_config.PROCESS, noted.read_bytes())


def test_who_finds_no_process_noted_but_something_else_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        assert (launcher.process_in(tmp_path), launcher.noted_process(tmp_path)) == (None, None)
        assert not caplog.records, "what was never written is missed by nobody"
        (tmp_path / executor_config.PROCESS).write_bytes(misspelt(ProcessId.mine()))
        assert (launcher.process_in(tmp_path), launcher.noted_process(tmp_path)) == (None, None)
    assert ["unknown field `gaet`" in one for one in caplog.messages] == [True, True]


def test_a_node_keeps_its_name_whatever_else_its_settings_say(tmp_path: Path) -> None:
    assert node_settings.name_in(tmp_path) == ""
    (tmp_path / node_settings.CONFIG).write_bytes(misspelt(NODE))
    assert node_settings.name_in(tmp_path) == "n"
    with pytest.raises(PoolRefusal, match="unknown field `gaet`"):
        node_settings.read(tmp_path)
