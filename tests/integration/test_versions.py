"""A peer of another version of the wire is told so, in a sentence with both versions, before anything is decoded."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gpu_backend.transport import curve
from gpu_backend.transport.asking import Door, ask
from gpu_backend.wire import codec, control, joining
from gpu_backend.wire.errors import PoolRefusal
from gpu_backend.wire.version import MAGIC, PROTOCOL_VERSION

from .conftest import MakePool, RunningPool

OTHER = PROTOCOL_VERSION + 1
BOTH = rf"The peer speaks protocol version {PROTOCOL_VERSION}, this side speaks {OTHER}\."
QUESTIONS = (joining.AskNode(0), joining.Join(0, "k" * 40))


@pytest.fixture(scope="module")
def pool(make_pool: MakePool) -> RunningPool:
    return make_pool()


@pytest.fixture
def we_are_of_another_version(pool: RunningPool) -> Iterator[None]:
    """This process only: the pool's own are of the version that they were started with."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(codec, "_PREFIX", bytes((MAGIC, OTHER)))
        patch.setattr(codec, "PROTOCOL_VERSION", OTHER)
        yield


@pytest.mark.usefixtures("we_are_of_another_version")
def test_a_notebook_is_told_both_versions(pool: RunningPool) -> None:
    with pytest.raises(PoolRefusal, match=BOTH):
        ask(pool.ada, control.OpenSession(0, "a.ipynb"))


@pytest.mark.usefixtures("we_are_of_another_version")
@pytest.mark.parametrize("question", QUESTIONS, ids=lambda one: type(one).__name__)
def test_a_machine_is_told_both_versions(pool: RunningPool, question: joining.AskNode | joining.Join) -> None:
    door = Door(pool.state.agent_endpoint, pool.ada.server_key, curve.load(pool.state.agent_key))
    with pytest.raises(PoolRefusal, match=BOTH):
        ask(door, question)
