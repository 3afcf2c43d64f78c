"""What ops leave to a thread that launches is with the driver before anything else may go to the device."""

from __future__ import annotations

from typing import Any

import pytest

from gpu_backend.executor.config import PASSES
from gpu_backend.executor.heap import Kind
from gpu_backend.sources import are_asked_for
from gpu_backend.wire.messages import Op
from gpu_backend.wire.values import Ref, Tuple
from tests.unit.executor.program.numpy_replays import GatheringCpu
from tests.unit.executor.program.played import PlayedNotebook, added
from tests.unit.executor.program.test_passes import BEGIN

try:
    from gpu_backend.executor.program import _recurring  # noqa: F401 - whether it is compiled
except ImportError:
    pytest.skip("nothing is compiled here", allow_module_level=True)
if are_asked_for():
    pytest.skip("nothing compiled is wanted here", allow_module_level=True)


_KERNEL = 'extern "C" __global__ void nothing() {}'


class Launcher:
    """Notes what it is told; `fails` is what it says at the next `settle`."""

    may_leave, left = True, 0

    def __init__(self) -> None:
        self.told: list[str] = []
        self.fails: Exception | None = None

    def begin(self) -> None:
        self.told.append("begin")

    def hold(self) -> None:
        self.told.append("hold")

    def settle(self) -> None:
        self.told.append("settle")
        failed, self.fails = self.fails, None
        if failed is not None:
            raise failed


class LeavingCpu(GatheringCpu):
    """Leaves launches to a thread that there is not, and notes when CuPy is called."""

    def __init__(self) -> None:
        super().__init__(100)
        self.launcher: Any = Launcher()

    def resolve(self, qualname: str) -> object:
        found = super().resolve(qualname)
        if qualname != "cupy.linalg.norm":
            return found

        def noted(*args: object, **kwargs: object) -> object:
            self.launcher.told.append("CuPy")
            return found(*args, **kwargs)  # type: ignore[operator]

        return noted


@pytest.fixture
def on() -> PlayedNotebook:
    """A notebook whose additions recur."""
    made = PlayedNotebook(PASSES, LeavingCpu())
    made.run(*BEGIN)
    for _ in range(4):
        made.run(*_sums())
    told(made).clear()
    return made


def _sums(count: int = 3) -> list[Op]:
    drops = [Op(".nothing", 0, (), tuple(range(100, 100 + count)))]
    return [added(100 + at, Ref(1), Ref(1)) for at in range(count)] + drops


def told(on: PlayedNotebook) -> list[str]:
    """Return what the launcher of ``on`` was told."""
    launcher: Launcher = on.device.launcher  # type: ignore[assignment]
    return launcher.told


def test_launches_stay_left_where_all_recurs(on: PlayedNotebook) -> None:
    on.run(*_sums()[:-1])
    assert told(on) == ["begin"]
    on.run(added(110, Ref(1), Ref(1)))
    assert told(on) == ["begin", "begin"]


def test_who_calls_cupy_waits_first(on: PlayedNotebook) -> None:
    on.run(*_sums()[:-1], Op("cupy.linalg.norm", 120, (Ref(1),)), added(121, Ref(1), Ref(1)))
    assert told(on)[:2] == ["begin", "settle"]
    assert "CuPy" in told(on)
    assert "begin" not in told(on)[1 : told(on).index("CuPy")]
    assert told(on)[-1] == "begin"


@pytest.mark.parametrize("what", ["read", "cancelled", "learnt", "cleared"])
def test_whoever_else_may_use_the_device_waits_first(on: PlayedNotebook, what: str) -> None:
    on.run(*_sums()[:-1])
    told(on).clear()
    if what == "read":
        on.contents(Ref(100))
        assert told(on)[:2] == ["begin", "settle"]
    elif what == "cancelled":
        on.send(added(130, Ref(1), Ref(1)))
        batch = on.talk.front()
        assert batch is not None
        on.stream.cancel(batch)
        assert told(on)[0] == "hold"
    elif what == "learnt":
        for _ in range(2):
            on.run(Op("cupy.cumsum", 131, (Ref(1),)), Op(".nothing", 0, (), (131,)))
        assert on.stream.has_lesson
        told(on).clear()
        on.stream.learn()
        assert told(on)[0] == "hold"
    else:
        on.stream.clear()
        assert told(on)[0] == "hold"


def test_what_was_refused_late_is_told_of_the_next_op_that_is_pythons(on: PlayedNotebook) -> None:
    on.device.launcher.fails = RuntimeError("the launch was lost")  # type: ignore[union-attr]
    answers = on.run(*_sums()[:-1], Op("cupy.linalg.norm", 120, (Ref(1),)))
    assert [(one.error.kind, one.error.message) for one in answers if one.error is not None] == [
        ("builtins.RuntimeError", "the launch was lost")
    ]


def test_a_kernels_attribute_ends_what_was_captured(on: PlayedNotebook) -> None:
    direct = on.stream._direct
    assert direct is not None
    known = dict(direct._courses)
    assert known
    on.run(Op(".setattr", 0, (Ref(1), "shape", Tuple((2, 3)))))
    assert direct._courses == known, "as of what is no kernel: programs set those in loops"
    on.stream.heap.put(90, on.device.resolve("cupy.RawKernel")(_KERNEL, "nothing"), Kind.KERNEL)
    assert not on.run(Op(".setattr", 0, (Ref(90), "max_dynamic_shared_size_bytes", 0)))
    assert not direct._courses, "a launch that the driver would refuse is made by CuPy, at its own line"
