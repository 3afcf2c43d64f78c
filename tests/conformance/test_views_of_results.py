"""Whatever an executor is asked about a view of a result, it answers what NumPy answers: it never misreads memory."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from gpu_backend.devices import open_device
from gpu_backend.devices.base import Device
from kernelproxy.namespace.names import make
from tests.conformance.asked_of_views import REMOTE, Tally, cases, judged, mirror, verdict
from tests.conformance.in_process import InProcess, notebook_on
from tests.conformance.questions import QUESTIONS

#: Cases of each seed. A GPU compiles a kernel for each new combination of dtypes, so it gets few by default.
_CASES = int(os.environ.get("VIEW_CASES", "0"))
_SEED = int(os.environ.get("VIEW_SEED", "1"))

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module", params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu_long)])
def device(request: pytest.FixtureRequest) -> Device:
    return open_device(request.param)


@pytest.fixture(scope="module")
def executor(device: Device) -> Iterator[InProcess]:
    with notebook_on(device) as one:
        yield one


def test_answers_are_numpys(executor: InProcess, device: Device) -> None:
    tally = Tally()
    for case in cases(_SEED, _CASES or (4_000 if device.info.kind == "cpu" else 400)):
        tally.add(case, verdict(case))
    sys.stdout.write(f"\n{device.info.kind}, seed {_SEED}: {tally}\n")  # seen with `pytest -s`
    assert tally.wrong == []
    assert tally.counts["same"] > tally.counts["refused"]


def _columns() -> Any:
    return REMOTE.asarray(np.asfortranarray(np.random.default_rng(3).normal(size=(4, 3))))


def _triangle() -> Any:
    return REMOTE.asarray(np.tril(np.random.default_rng(4).normal(size=(3, 3))) + 3 * np.eye(3))


#: Results that NumPy and SciPy lay out otherwise than CuPy, or than the notebook could know.
SOURCES = {
    "eigh": lambda: REMOTE.linalg.eigh(_triangle() @ _triangle().T)[1],
    "qr": lambda: REMOTE.linalg.qr(_columns())[0],
    "r": lambda: REMOTE.linalg.qr(_columns())[1],
    "svd": lambda: REMOTE.linalg.svd(_columns(), full_matrices=False)[0],
    "solve_triangular": lambda: make("cupyx.scipy.linalg.solve_triangular")(_triangle(), _columns().T.copy(), 0, True),
    "roll": lambda: REMOTE.roll(_columns(), 1, 0),
    "pad": lambda: REMOTE.pad(_columns(), 1),
    "diff": lambda: REMOTE.diff(_columns(), axis=0),
    "argsort": lambda: REMOTE.argsort(_columns(), axis=0),
    "einsum": lambda: REMOTE.einsum("ij,jk->ki", _columns(), _triangle()),
    "copy": lambda: REMOTE.ascontiguousarray(_columns()).T.copy("K"),
}  # fmt: skip


def test_where_a_result_lies_otherwise_views_are_not_misread(executor: InProcess, device: Device) -> None:
    """The second wall, and the judge itself: without the first, raw memory is not what the notebook believes."""
    if device.lays_out_as_cupy:
        pytest.skip("this device's results lie as proved by themselves")
    host = mirror(SOURCES["roll"]())
    verdicts = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(executor.stream, "_as_proved", None)
        for question in ("transpose(range)", "memory"):
            made = SOURCES["roll"]()
            verdicts[question] = judged(question, (made, host), (made, host), 1)
    assert verdicts["transpose(range)"] == "same"
    assert verdicts["memory"] != "same"


@pytest.mark.parametrize("source", SOURCES)
def test_results_of_another_order_are_read_as_they_lie(executor: InProcess, source: str) -> None:
    verdicts = {}
    for question in QUESTIONS:
        made, again = SOURCES[source](), SOURCES[source]()
        host = mirror(again)  # of another one, so that nothing has been asked of the first before
        verdicts[question] = judged(question, (made, host), (made, host), 1)
    assert {name: one for name, one in verdicts.items() if one not in ("same", "refused")} == {}
    assert sum(one == "same" for one in verdicts.values()) > 0.8 * len(QUESTIONS)
