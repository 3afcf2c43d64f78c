"""How a node of a Ray cluster is made ready for its agent, by what it is: the head, one that joined, or any other."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from gpu_backend.engine.ray_words import Prepared
from gpu_backend.node import settings as node_settings
from gpu_backend.pool import joined, ray_node, settings, state
from gpu_backend.pool.joined import Joined
from gpu_backend.pool.ray_node import Told
from gpu_backend.pool.settings import PoolSettings
from gpu_backend.transport import curve

KEY = "k" * 40


def told(**given: object) -> Told:
    return Told("tcp://10.0.0.1:7767", KEY, ray_node.of_machines(settings.made_of({"devices": "cpu", **given})))


def test_a_node_of_any_cluster_has_the_pools_settings_and_its_own_address(tmp_path: Path) -> None:
    prepared = ray_node.prepare(tmp_path / "n", "n", "10.0.0.2", told(policy="tgs", advertise_host="gpu1"))
    agent = node_settings.read(Path(prepared.directory))
    assert (agent.node, agent.gateway, agent.gateway_key) == ("n", "tcp://10.0.0.1:7767", KEY)
    assert (agent.bind_host, agent.advertise_host, agent.policy, agent.devices) == ("10.0.0.2", "", "tgs", "cpu")
    assert prepared.key == curve.load(Path(agent.key_file)).public.decode()
    assert prepared.is_new
    again = ray_node.prepare(tmp_path / "n", "n", "10.0.0.2", told(policy="tgs", advertise_host="gpu1"))
    assert again == msgspec.structs.replace(prepared, is_new=False)
    assert ray_node.prepare(tmp_path / "n", "n", "10.0.0.2", told(policy="fifo")).is_new


def test_the_head_is_heard_where_its_settings_say(tmp_path: Path) -> None:
    head = state.at(tmp_path / "head")
    head.make()
    head.settings_file.touch()
    prepared = ray_node.prepare(head.root, "h", "10.0.0.1", told(executor_host="192.168.0.1"))
    assert node_settings.read(Path(prepared.directory)).bind_host == "192.168.0.1"


def test_a_machine_that_joined_has_settings_of_its_own(tmp_path: Path) -> None:
    machine = state.at(tmp_path / "m")
    machine.make()
    (machine.root / "joined.json").write_bytes(
        msgspec.json.encode(Joined("m", "lab", "tcp://head:7767", "s" * 40, "ray"))
    )
    own = PoolSettings(executor_host="127.0.0.1", policy="fifo", devices="cpu")
    joined.settings_file(machine).write_text(settings.render(own, joined.OF_A_NODE))
    agent = node_settings.read(Path(ray_node.prepare(machine.root, "m", "10.0.0.2", told(policy="tgs")).directory))
    assert (agent.gateway, agent.gateway_key, agent.bind_host) == ("tcp://head:7767", "s" * 40, "127.0.0.1")
    assert agent.policy == "fifo"


def prepare(name: str, home: Path, **variables: str) -> subprocess.CompletedProcess[bytes]:
    """Run what a keeper runs."""
    words = msgspec.json.encode([name, "127.0.0.1", msgspec.json.encode(told()).decode()])
    command = [sys.executable, "-m", "gpu_backend.pool.ray_node"]
    runtime = {"XDG_RUNTIME_DIR": os.environ["XDG_RUNTIME_DIR"]}
    environment = {"XDG_STATE_HOME": str(home), "PYTHONPATH": str(Path(__file__).parents[3]), **runtime, **variables}
    return subprocess.run(command, input=words, env=environment, capture_output=True, check=False)


def test_the_keeper_is_told_where_the_agent_is(tmp_path: Path) -> None:
    done = prepare("10.0.0.2", tmp_path)
    prepared = msgspec.json.decode(done.stdout, type=Prepared)
    assert prepared.directory == str(tmp_path / "gpu-workbench" / "ray" / "10.0.0.2" / "node")
    own = prepare("m", tmp_path, **{ray_node.STATE: str(tmp_path / "own")})
    assert msgspec.json.decode(own.stdout, type=Prepared).directory == str(tmp_path / "own" / "node")


@pytest.mark.parametrize("name", ["../elsewhere", "", "a/b"])
def test_a_name_that_is_a_path_is_refused_in_one_line(tmp_path: Path, name: str) -> None:
    done = prepare(name, tmp_path)
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.decode().splitlines()[-1].endswith("start its Ray with another --node-name.")
    assert not list(tmp_path.iterdir())
