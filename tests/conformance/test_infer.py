"""Whatever inference claims, a device confirms: shape, dtype, strides, shared memory, and every word of an error."""

from __future__ import annotations

import os

import pytest

from gpu_backend.devices import open_device
from tests.conformance.infer_calls import TEMPLATES, Array, Call, calls, launches
from tests.conformance.infer_judge import Judge

#: Calls of each template. A GPU compiles a kernel for each new combination of dtypes, so it gets few by default.
_CALLS = int(os.environ.get("INFER_CALLS", "8"))
_SEED = int(os.environ.get("INFER_SEED", "1"))
#: Where the CPU device refuses what CuPy takes. A line goes when it has caught up.
_DEVIATIONS = {
    "cupy.left_shift": "NumPy refuses Python integers beyond the array's dtype",
    "cupy.lexsort": "NumPy refuses to sort by no keys",
    "cupy.random.binomial": "NumPy refuses fractions of a trial and probabilities above one",
    "cupyx.scipy.ndimage.convolve": "SciPy takes one mode for all axes",
    "cupyx.scipy.ndimage.correlate": "SciPy takes one mode for all axes",
    "cupyx.scipy.ndimage.median_filter": "SciPy takes one mode for all axes",
    "cupyx.scipy.special.exprel": "SciPy has no complex one",
}


@pytest.fixture(scope="module", params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu_long)])
def judge(request: pytest.FixtureRequest) -> Judge:
    return Judge(open_device(request.param))


@pytest.mark.parametrize("qualname", sorted(TEMPLATES))
def test_claims_hold(judge: Judge, qualname: str) -> None:
    if judge.kind == "cpu" and qualname in _DEVIATIONS:
        pytest.xfail(_DEVIATIONS[qualname])
    wrong = [verdict for call in calls(_SEED, _CALLS, [qualname]) if (verdict := judge.verdict(call))]
    assert wrong == []


def test_claims_about_launches_hold(judge: Judge) -> None:
    wrong = [verdict for launch in launches(_SEED, 3 * _CALLS) if (verdict := judge.verdict_on_launch(launch))]
    assert wrong == []


def test_most_calls_are_proved(judge: Judge) -> None:
    """Runs after the others of its device."""
    unproved = {
        name: reasons
        for name, reasons in judge.unproved.items()
        if name not in judge.proved and not all("gaps" in reason for reason in reasons)
    }
    assert unproved == {}


def test_a_wrong_claim_is_noticed(judge: Judge) -> None:
    """The judge itself: a claim that is not so must not pass."""
    call = Call("cupy.ndarray.copy", (Array((2, 3), "d", "F"),), {"order": "K"})
    assert judge.verdict(call) == ""
    assert "claimed Layout(shape=(6,)" in judge.against(call, claimed_as="cupy.ndarray.flatten")
