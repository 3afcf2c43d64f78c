"""Process groups whose ranks share one GPU, or are on two machines that are played and have that GPU both."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gpu_backend.pool import commands
from tests.faults.machines import machine
from tests.integration.notebook_pool import cpu_pool, open_to_machines, wait_until
from tests.integration.ranks import ranks
from tests.integration.test_process_groups import _ALL_OF_IT, _LARGE, _SAME_BITS, _SPARSE

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]


@pytest.fixture(scope="module", autouse=True, params=["one executor's machine", "two machines"])
def pool(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    are_apart = request.param == "two machines"
    settings = open_to_machines(devices="cuda", sessions_per_device=1 if are_apart else 3, max_sessions_per_user=0)
    root: Path = tmp_path_factory.mktemp("groups")
    with cpu_pool(root, settings) as own:
        if not are_apart:
            yield
            return
        with machine(own) as other:
            other.join(devices="cuda")
            wait_until(lambda: len({device.node for device in commands.status(own).devices}) == 2)
            yield


@pytest.mark.parametrize(
    ("program", "told"),
    [(_ALL_OF_IT, [True]), (_LARGE, [[True] * 4, True]), (_SPARSE, [True, True])],
    ids=["every dtype", "large", "sparse"],
)
def test_two_ranks(program: str, told: list[object]) -> None:
    assert ranks(program, 2) == [told] * 2


def test_the_same_bits() -> None:
    first, second = ranks(_SAME_BITS, 2)
    assert first == second
