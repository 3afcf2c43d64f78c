"""What ``workbench doctor`` says of a pool's Ray cluster, on its head and on a machine that has joined."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from gpu_backend.engine import ray_cluster
from gpu_backend.engine.detached import ProcessId, end, spawn, write_identity
from gpu_backend.engine.ray_cluster import RayCluster
from gpu_backend.engine.ray_words import Looked
from gpu_backend.pool import clusters, joined, settings, state
from gpu_backend.pool.joined import Joined
from gpu_backend.pool.settings import PoolSettings
from gpu_backend.pool.state import PoolState
from gpu_backend.wire.clusters import Cluster
from gpu_backend.wire.errors import PoolRefusal
from workbench import cluster_diagnosis
from workbench.finding import Finding, State

HERE = ("2.60.0", platform.python_version())


@pytest.fixture(autouse=True)
def _with_ray(runtime_directory: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_diagnosis, "need_ray", lambda: None)
    monkeypatch.setattr(clusters, "need_ray", lambda: None)
    monkeypatch.setattr(clusters.importlib.metadata, "version", lambda name: HERE[0])
    monkeypatch.setattr(RayCluster, "look", lambda cluster: Looked("", "", *HERE))


@pytest.fixture
def head(tmp_path: Path) -> PoolState:
    """The head of a pool on Ray, which is up."""
    made = state.at(tmp_path / "pool")
    made.make()
    wanted = settings.made_of({"engine": "ray", "nodes_host": "10.0.0.1"})
    made.settings_file.write_text(settings.render(wanted))
    write_identity(made.process_file("supervisor"), ProcessId.mine())
    return made


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[PoolState]:
    """A machine that has joined it, on which Ray runs."""
    made = state.at(tmp_path / "node")
    made.make()
    known = Joined("m", "lab", "tcp://10.0.0.1:7767", "s" * 40, "ray")
    (made.root / "joined.json").write_bytes(msgspec.json.encode(known))
    own = PoolSettings(executor_host="127.0.0.1")
    joined.settings_file(made).write_text(settings.render(own, joined.OF_A_NODE))
    clusters.note(made, Cluster(0, "10.0.0.1:7768", "token", *HERE), own)
    write_identity(made.process_file("supervisor"), ProcessId.mine())
    command = [sys.executable, "-c", "import signal; signal.pause()", f"--temp-dir={made.ray}"]
    ray = spawn(command, made.logs / "ray.log", made.root)
    yield made
    end(ray, 0.0)


def only(found: Iterator[Finding]) -> Finding:
    (one,) = found
    assert one.subject == "Ray cluster"
    return one


def test_all_is_well_on_head_and_machine(head: PoolState, machine: PoolState) -> None:
    for found in (only(cluster_diagnosis.of_head(head)), only(cluster_diagnosis.of_node(machine))):
        assert (found.state, found.remedy) == (State.OK, "")
        assert found.found == f"10.0.0.1:7768 lets this machine in: Ray 2.60.0 on {HERE[1]}"


def test_a_pool_that_is_down_or_has_no_ray_is_not_asked(head: PoolState) -> None:
    head.settings_file.write_text(settings.render(PoolSettings()))
    assert not list(cluster_diagnosis.of_head(head))
    head.process_file("supervisor").unlink()
    head.settings_file.write_text("engine = 'neither'")
    assert not list(cluster_diagnosis.of_head(head))


@pytest.mark.parametrize(
    ("looked", "found", "of_the_head", "of_the_machine"),
    [
        (Looked("shut", "no answer"), "is shut: no answer", "no firewall", "no firewall"),
        (
            Looked("token"),
            "refuses the token in",
            "`workbench pool down` and `workbench pool up`",
            "`workbench node up`",
        ),
        (Looked("", "", "2.59.0", HERE[1]), "lets in none but the same", "same version", "same version"),
        (Looked("", "", HERE[0], "3.9.1"), "on Python 3.9.1", "with Python 3.9.1", "with Python 3.9.1"),
    ],
)
def test_what_is_wrong_is_one_problem_with_its_remedy(
    head: PoolState, machine: PoolState, monkeypatch: pytest.MonkeyPatch,
    looked: Looked, found: str, of_the_head: str, of_the_machine: str,
) -> None:  # fmt: skip
    monkeypatch.setattr(RayCluster, "look", lambda cluster: looked)
    told = {of_the_head: cluster_diagnosis.of_head(head), of_the_machine: cluster_diagnosis.of_node(machine)}
    for remedy, findings in told.items():
        one = only(findings)
        assert one.state is State.PROBLEM
        assert found in one.found
        assert remedy in one.remedy


def test_ray_that_does_not_come_up_on_a_machine_is_told_with_its_log(machine: PoolState) -> None:
    clusters.end(machine)
    one = only(cluster_diagnosis.of_node(machine))
    assert (one.state, one.found) == (
        State.PROBLEM, f"Ray does not come up on this machine: see {machine.logs}{os.sep}ray.log",
    )  # fmt: skip


def test_a_machine_without_ray_is_told_what_to_install(machine: PoolState, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_diagnosis, "need_ray", ray_cluster.need_ray)
    monkeypatch.setattr(ray_cluster.importlib.util, "find_spec", lambda name: None)
    one = only(cluster_diagnosis.of_node(machine))
    assert one.state is State.PROBLEM
    assert "pip install 'gpu-workbench[ray]'" in one.found


def test_the_command_line_says_all_of_it(tmp_path: Path) -> None:
    from workbench import cli
    from workbench.commands import pool

    words = "pool up --engine ray --head 10.0.0.1 --ray-port 7 --ray-address 10.0.0.9:6379 --ray-token-file /t"
    wanted = pool._wanted_settings(cli.parsed([*words.split(), "--ray-certificates", "/c"]), state.at(tmp_path / "p"))
    assert wanted == PoolSettings(
        engine="ray", nodes_host="10.0.0.1", ray_port=7, ray_address="10.0.0.9:6379", ray_token_file="/t",
        ray_certificates="/c",
    )  # fmt: skip
    own = state.at(tmp_path / "own")
    own.make()
    own.settings_file.write_text(settings.render(PoolSettings(engine="ray", nodes_host="10.0.0.1")))
    assert settings.read(own.settings_file).engine == "ray", "so the next start has it again"
    with pytest.raises(PoolRefusal, match="with another engine"):
        pool._wanted_settings(cli.parsed(["pool", "up", "--engine", "local"]), own)
