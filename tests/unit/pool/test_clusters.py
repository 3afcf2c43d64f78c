"""The Ray cluster of a pool, as far as can be told without Ray: what stands in its way, and what machines are told."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import platform
import socket
import sys
from pathlib import Path

import pytest

from gpu_backend.engine import detached
from gpu_backend.engine.ray_cluster import RayCluster
from gpu_backend.engine.ray_words import Looked
from gpu_backend.pool import clusters, commands, running, settings, state
from gpu_backend.pool.settings import PoolSettings
from gpu_backend.pool.state import PoolState
from gpu_backend.wire.clusters import Cluster
from gpu_backend.wire.errors import PoolRefusal
from tests.integration.notebook_pool import wait_until

HERE = ("2.60.0", platform.python_version())


@pytest.fixture
def pool(tmp_path: Path) -> PoolState:
    made = state.at(tmp_path / "pool")
    made.make()
    return made


@pytest.fixture
def _with_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a Ray of a known version here, as far as can be told from outside."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name)
    monkeypatch.setattr(importlib.metadata, "version", lambda name: HERE[0])


def on_ray(**given: object) -> PoolSettings:
    return settings.made_of({"engine": "ray", "nodes_host": "127.0.0.1", **given})


def test_without_the_extra_one_sentence_says_what_to_install(pool: PoolState, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(PoolRefusal, match=r"pip install 'gpu-workbench\[ray\]'"):
        clusters.refuse_unusable(pool, on_ray())
    with pytest.raises(PoolRefusal, match=r"pip install 'gpu-workbench\[ray\]'"):
        clusters.note(pool, Cluster(0, "10.0.0.1:7768", "x", *HERE), PoolSettings())


def test_a_pool_that_cannot_have_ray_is_left_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    fresh = state.at(tmp_path / "fresh")
    with pytest.raises(PoolRefusal, match="needs Ray"):
        commands.up(fresh, on_ray())
    assert not fresh.root.exists()


@pytest.mark.usefixtures("_with_ray")
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"nodes_host": ""}, "say which, with --head HOST"),
        ({"nodes_host": "0.0.0.0"}, "meet at one address of this machine"),
        ({"ray_certificates": "/none"}, "ray_certificates is not right: there is no /none/tls.crt"),
        ({"ray_address": "10.0.0.1:6379"}, "ray_token_file is not right: there is no a file that is not named"),
        ({"engine": "local", "ray_address": "10.0.0.1:6379"}, "add --engine ray"),
    ],
)
def test_settings_that_ray_cannot_have_are_refused_by_name(pool: PoolState, given: dict[str, str], words: str) -> None:
    with pytest.raises(PoolRefusal, match=words):
        clusters.refuse_unusable(pool, on_ray(**given))


@pytest.mark.usefixtures("_with_ray")
def test_a_port_that_somebody_has_is_told_before_ray_is_started(pool: PoolState) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(
            PoolRefusal, match=f"Ray's head cannot be heard at 127.0.0.1:{port}: Address already in use"
        ):
            clusters.refuse_unusable(pool, on_ray(ray_port=port))


@pytest.mark.parametrize("address", ["10.0.0.1", "host:port", "a b:1"])
def test_an_address_of_a_cluster_has_a_host_and_a_port(address: str) -> None:
    with pytest.raises(PoolRefusal, match=r"write it like '10\.0\.0\.1:6379'"):
        on_ray(ray_address=address)


@pytest.mark.usefixtures("_with_ray")
@pytest.mark.parametrize(
    ("looked", "found", "remedy"),
    [
        (Looked("shut", "Connection refused"), "The Ray cluster at h:1 is shut: Connection refused", "no firewall"),
        (Looked("token"), "The Ray cluster at h:1 refuses the token in /t", "other token"),
        (Looked("silent", "no"), "What listens at h:1 does not answer as a Ray cluster: no", "certificates or neither"),
        (
            Looked("", "", "2.59.0", HERE[1]),
            f"This machine has Ray 2.60.0 on Python {HERE[1]}, the Ray cluster at h:1 has Ray 2.59.0 on Python "
            f"{HERE[1]}, and lets in none but the same",
            "Install gpu-workbench[ray] of the same version",
        ),
        (Looked("", "", HERE[0], "3.9.1"), "has Ray 2.60.0 on Python 3.9.1", "with Python 3.9.1"),
    ],
)
def test_what_is_between_a_machine_and_its_cluster_is_a_sentence_with_its_remedy(
    looked: Looked, found: str, remedy: str
) -> None:
    trouble = clusters.trouble_of(RayCluster("h:1", Path("/t")), looked, "other token")
    assert trouble is not None
    assert found in trouble.found
    assert remedy in trouble.remedy


@pytest.mark.usefixtures("_with_ray")
def test_nothing_is_between_those_that_are_alike() -> None:
    assert clusters.trouble_of(RayCluster("h:1", Path("/t")), Looked("", "", *HERE), "") is None


@pytest.mark.usefixtures("_with_ray")
def test_machines_are_told_address_token_and_versions_and_no_log_is(pool: PoolState) -> None:
    told = clusters.as_told(pool, on_ray())
    assert (told.address, told.ray, told.python, told.is_encrypted) == ("127.0.0.1:7768", *HERE, False)
    assert told.secret == pool.ray_token.read_text()
    assert told.secret not in repr(told)
    assert clusters.as_told(pool, PoolSettings()) == Cluster(0)


@pytest.mark.usefixtures("_with_ray")
def test_what_a_machine_is_told_it_keeps_and_the_token_apart(pool: PoolState) -> None:
    with pytest.raises(PoolRefusal, match="was not told where the pool's Ray cluster is"):
        clusters.noted(pool)
    told = Cluster(7, "10.0.0.1:7768", "a-secret", *HERE)
    assert clusters.note(pool, told, PoolSettings())
    assert not clusters.note(pool, told, PoolSettings()), "it is the same"
    assert clusters.of_node(pool, PoolSettings()).address == "10.0.0.1:7768"
    assert pool.ray_token.read_text() == "a-secret"
    assert pool.ray_token.stat().st_mode & 0o777 == 0o600
    assert "a-secret" not in (pool.root / "cluster.json").read_text()
    assert clusters.note(pool, Cluster(8, "10.0.0.1:7768", "another", *HERE), PoolSettings())


@pytest.mark.usefixtures("_with_ray")
def test_a_machine_that_cannot_be_a_node_is_refused_before_anything_is_kept(pool: PoolState) -> None:
    with pytest.raises(PoolRefusal, match="lets in none but the same"):
        clusters.note(pool, Cluster(0, "10.0.0.1:7768", "x", "2.59.0", HERE[1]), PoolSettings())
    with pytest.raises(PoolRefusal, match="--ray-certificates DIR"):
        clusters.note(pool, Cluster(0, "10.0.0.1:7768", "x", *HERE, is_encrypted=True), PoolSettings())
    assert not pool.ray_token.exists()


def test_certificates_are_told_to_ray_by_its_own_variables(tmp_path: Path) -> None:
    plain = RayCluster("h:1", tmp_path / "t").environment()
    assert "RAY_USE_TLS" not in plain
    encrypted = RayCluster("h:1", tmp_path / "t", tmp_path).environment()
    assert encrypted["RAY_USE_TLS"] == "1"
    assert encrypted["RAY_TLS_SERVER_CERT"] == str(tmp_path / "tls.crt")
    assert encrypted["RAY_TLS_SERVER_KEY"] == str(tmp_path / "tls.key")
    assert encrypted["RAY_TLS_CA_CERT"] == str(tmp_path / "ca.crt")


def test_the_engine_of_a_pool_that_is_up_stays(pool: PoolState) -> None:
    clusters.refuse_other_engine(pool, PoolSettings())
    clusters.refuse_other_engine(pool, on_ray(ray_address="10.0.0.1:6379"))
    with pytest.raises(PoolRefusal, match="engine cannot change while the pool is up"):
        clusters.refuse_other_engine(pool, on_ray())


def test_all_that_ray_has_started_for_a_pool_is_found_and_ended(pool: PoolState) -> None:
    code = "import signal, subprocess, sys; subprocess.Popen(['sleep', '600']); signal.pause()"
    leader = detached.spawn([sys.executable, "-c", code, f"--temp-dir={pool.ray}"], pool.logs / "log", pool.root)
    wait_until(lambda: [one.role for one in running.processes(pool)] == ["ray", "ray"])
    elsewhere = state.at(pool.root.with_name("another"))
    assert not running.processes(elsewhere)
    pool.ray.mkdir()
    (pool.ray / "ray_current_cluster").write_text("127.0.0.1:7768")
    clusters.end(pool)
    assert not leader.is_running
    assert not running.processes(pool)
    assert not (pool.ray / "ray_current_cluster").exists(), "by which Ray would not start its head again"
