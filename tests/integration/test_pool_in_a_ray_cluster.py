"""A pool in a Ray cluster that was there before it, and is there when it is gone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from gpu_backend.engine.ray_cluster import make_token
from gpu_backend.pool import commands, machines, running, settings, state
from gpu_backend.wire.errors import PoolRefusal
from tests.integration.conftest import MakePool
from tests.ray_nodes import NEEDS_RAY, RayHead, head_of_ray
from tests.spare_ports import spare_port

pytestmark = [pytest.mark.ray, NEEDS_RAY, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    with TemporaryDirectory(prefix="gwb") as directory:
        yield Path(directory)


@pytest.fixture(scope="module")
def head(home: Path, make_pool: MakePool) -> Iterator[RayHead]:
    """A cluster of the node ``n``, whose account has that home."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(home))
        with head_of_ray("n") as one:
            yield one


def in_it(head: RayHead, **others: object) -> dict[str, object]:
    cluster = head.cluster
    return {
        "engine": "ray", "ray_address": cluster.address, "ray_token_file": str(cluster.token_file),
        "nodes_host": "127.0.0.1", "nodes_port": spare_port(), **others,
    }  # fmt: skip


def test_its_nodes_are_the_pools_and_it_is_left_alone(head: RayHead, home: Path, make_pool: MakePool) -> None:
    pool = make_pool(**in_it(head))
    node = state.at(home / "gpu-workbench" / "ray" / "n")
    assert [(one.name, one.state) for one in commands.status(pool.state).nodes] == [("n", "up")]
    ticket = pool.open()
    assert pool.sessions() == {ticket.session: "serving"}
    assert {one.role for one in running.processes(node)} >= {"agent", "executor"}
    with pytest.raises(PoolRefusal, match=r"Every node of the Ray cluster at .* is a machine of this pool"):
        machines.remove(pool.state, "n")
    pool.kill("gateway")
    assert pool.renew(ticket).epoch == ticket.epoch
    commands.down(pool.state)
    assert not running.processes(node)
    assert not running.processes(pool.state)
    assert head.cluster.look().problem == ""


def test_what_keeps_a_pool_from_a_cluster_is_one_sentence_before_anything_is_started(
    head: RayHead, tmp_path: Path
) -> None:
    make_token(tmp_path / "another")
    fresh = state.at(tmp_path / "fresh")
    for wrong, words in (
        ({"ray_token_file": str(tmp_path / "another")}, "refuses the token in .*Put the cluster's own token there"),
        ({"ray_address": "127.0.0.1:9"}, "The Ray cluster at 127.0.0.1:9 is shut: Connection refused"),
    ):
        with pytest.raises(PoolRefusal, match=words):
            commands.up(fresh, settings.made_of(in_it(head, **wrong)))
        assert not fresh.root.exists()
