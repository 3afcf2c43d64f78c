"""Whatever inference claims, a device confirms: shape, dtype, strides, shared memory, and every word of an error."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpu_backend.executor.devices import open_device
from tests.conformance.infer_calls import TEMPLATES, Array, Call, calls, launches
from tests.conformance.infer_judge import Judge

#: Calls of each template. A GPU compiles a kernel for each new combination of dtypes, so it gets few by default.
_CALLS = int(os.environ.get("INFER_CALLS", "8"))
_SEED = int(os.environ.get("INFER_SEED", "1"))
#: Functions of which the CPU device is known to differ from CuPy in memory order, dtype or the words of an error.
_DEVIATIONS = frozenset(
    line for line in Path(__file__).with_name("infer_cpu_deviations.txt").read_text().split("\n") if line[:1] == "c"
)


@pytest.fixture(scope="module", params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def judge(request: pytest.FixtureRequest) -> Judge:
    return Judge(open_device(request.param))


@pytest.mark.parametrize("qualname", sorted(TEMPLATES))
def test_claims_hold(judge: Judge, qualname: str) -> None:
    if judge.kind == "cpu" and qualname in _DEVIATIONS:
        pytest.skip("the CPU device is known to differ here")
    wrong = [verdict for call in calls(_SEED, _CALLS, [qualname]) if (verdict := judge.verdict(call))]
    assert wrong == []


def test_claims_about_launches_hold(judge: Judge) -> None:
    wrong = [verdict for launch in launches(_SEED, 3 * _CALLS) if (verdict := judge.verdict_on_launch(launch))]
    assert wrong == []


def test_most_calls_are_proved(judge: Judge) -> None:
    """Runs after the others of its device."""
    unproved = {name: reasons for name, reasons in judge.unproved.items() if name not in judge.proved}
    assert unproved == {}


def test_a_wrong_claim_is_noticed(judge: Judge) -> None:
    """The judge itself: a claim that is not so must not pass."""
    call = Call("cupy.ndarray.copy", (Array((2, 3), "d", "F"),), {"order": "K"})
    assert judge.verdict(call) == ""
    assert "claimed Layout(shape=(6,)" in judge.against(call, claimed_as="cupy.ndarray.flatten")
