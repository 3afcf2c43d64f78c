"""What is done about matrices without an answer: every thread of a notebook has chosen it for itself."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from gpu_backend.devices import open_device
from gpu_backend.devices.base import Device
from gpu_backend.wire.messages import Want
from kernelproxy.calls.error_state import ErrorState
from kernelproxy.client import current
from kernelproxy.namespace.names import make
from tests.conformance.in_process import InProcess, notebook_on
from tests.cupy_names import CuPy

cp = CuPy()
seterr, geterr, errstate = (make(f"cupyx.{name}") for name in ("seterr", "geterr", "errstate"))
USUAL = {"divide": None, "over": None, "under": None, "invalid": None, "linalg": "ignore"}


class InOneThread(InProcess):
    """Runs the ops of all threads in one, as an executor's process does."""

    def __init__(self, device: Device, thread: ThreadPoolExecutor) -> None:
        super().__init__(device)
        self._thread = thread

    def work(self, most: int) -> None:
        self._thread.submit(super().work, most).result()


@pytest.fixture(scope="module", params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def executor(request: pytest.FixtureRequest) -> Iterator[InProcess]:
    device = open_device(request.param)
    with (
        ThreadPoolExecutor(1, initializer=device.enter_thread) as thread,
        notebook_on(device, InOneThread(device, thread)) as found,
    ):
        yield found


@pytest.fixture
def elsewhere(executor: InProcess) -> Iterator[Callable[[Callable[[], Any]], Any]]:
    """Have something done in another thread, always the same one."""
    with ThreadPoolExecutor(1) as other:
        yield lambda call: other.submit(call).result()


def fails() -> bool:
    """Tell whether a matrix that is not positive definite has no factor in words, else in NaN."""
    try:
        factor = cp.linalg.cholesky(cp.array([[1.0, 2.0], [2.0, 1.0]]))
    except np.linalg.LinAlgError:
        return True
    assert not np.array_equal(factor.get(), [[1, 0], [0, 1]])
    return False


def test_another_thread_keeps_what_it_has_chosen(elsewhere: Callable[[Callable[[], Any]], Any]) -> None:
    for _ in range(2):
        with errstate(linalg="raise"):
            assert geterr() == {**USUAL, "linalg": "raise"}
            assert elsewhere(geterr) == USUAL
            assert [fails(), elsewhere(fails), fails()] == [True, False, True]
        assert [fails(), elsewhere(fails)] == [False, False]


def test_another_thread_chooses_for_itself_alone(elsewhere: Callable[[Callable[[], Any]], Any]) -> None:
    assert elsewhere(lambda: seterr(linalg="raise")) == USUAL
    assert geterr() == USUAL
    assert [fails(), elsewhere(fails), fails()] == [False, True, False]
    elsewhere(lambda: seterr(linalg="ignore"))
    assert elsewhere(fails) is False


def test_a_thread_takes_its_choice_along(executor: InProcess) -> None:
    chooses = threading.Thread(target=lambda: seterr(linalg="raise"))
    chooses.start()
    chooses.join()
    assert fails() is False
    assert not current().part(ErrorState).linalg_may_raise, "nobody hears of it, so nobody need wait for it"


def test_what_says_nothing_is_refused(executor: InProcess) -> None:
    for kinds in ({"divide": "raise"}, {"linalg": "warn"}):
        with pytest.raises(NotImplementedError):
            seterr(**kinds)
    with pytest.raises(TypeError):
        seterr(fallback_mode="raise")
    assert geterr() == USUAL


def test_what_an_interrupt_has_dropped_is_said_again(executor: InProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline = current().pipeline
    for chosen, before in (("raise", False), ("ignore", True)):
        with monkeypatch.context() as patched:
            patched.setattr(pipeline, "call", interrupted)
            with pytest.raises(KeyboardInterrupt):
                seterr(linalg=chosen)
        assert geterr()["linalg"] == chosen
        assert fails() is not before


def interrupted(*args: object) -> None:
    raise KeyboardInterrupt


def test_an_executor_that_follows_is_told_anew(executor: InProcess) -> None:
    with errstate(linalg="raise"):
        state = current().part(ErrorState)
        known, linalg = state._told
        assert linalg == "raise"
        pipeline = current().pipeline
        state._told = (known[0], known[1], known[2] - 1), linalg  # type: ignore[index]
        pipeline.call("cupyx.seterr", (), Want.DESCRIPTION, {"linalg": "ignore"})  # as every executor begins
        assert fails()
    assert not fails()
