"""What the notebook answers by itself is what a GPU would have said, to the bit."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest
from hypothesis import example, given, settings

from gpu_backend.pool.settings import PoolSettings
from kernelproxy import settings as client_settings
from kernelproxy.client import Client
from tests.integration.notebook_pool import cpu_pool
from tests.mirrored_ops import differences
from tests.mirrored_programs import Run, Step, programs

pytestmark = pytest.mark.timeout(900)

#: An array is stored into itself by another type, which CuPy passes over.
_ITS_OWN_BYTES: list[Step] = [
    ("upload", 0, 0, 0), ("view", 1, 0, 0), ("reinterpret", 3, 0, 0), ("inplace", 0, 0, 0), ("store", 13, 190, 4),
]  # fmt: skip


@pytest.fixture(scope="module")
def clients(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Client]]:
    with cpu_pool(tmp_path_factory.mktemp("mirror"), PoolSettings(devices="cuda")):
        known = client_settings.load()
        made = {mode: Client(msgspec.structs.replace(known, host_mirror=mode)) for mode in ("on", "off")}
        yield made
        for one in made.values():
            one.close()


@pytest.mark.gpu
@settings(max_examples=300)
@given(program=programs)
@example(program=_ITS_OWN_BYTES)
def test_every_read_is_that_of_the_gpu(clients: dict[str, Client], program: list[Step]) -> None:
    said = {}
    for mode in ("on", "off"):
        with clients[mode] as one:
            said[mode] = Run(one).run(program)
    assert said["on"] == said["off"]
    assert clients["off"].session.counters.answered_here == 0


@pytest.mark.gpu_long
def test_every_op_has_the_bits_of_the_gpu(clients: dict[str, Client]) -> None:
    with clients["off"]:
        assert list(differences()) == []
