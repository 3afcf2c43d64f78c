"""What is in force for transforms: in each thread its own, and told to the executor that computes."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gpu_backend.opstream.layout import contiguous
from gpu_backend.opstream.proof.outcome import Unproved
from kernelproxy.calls import array_core, dispatch, planning
from kernelproxy.calls.planning import Planning
from kernelproxy.client import current
from kernelproxy.namespace import transforms
from kernelproxy.namespace.fft_config import config
from kernelproxy.namespace.names import make
from kernelproxy.stream.memory_model import MemoryModel


class PlayedPipeline:
    """Notes what is told."""

    def __init__(self) -> None:
        self.next_handle, self.dropped, self.memory = 1, deque[Any](), MemoryModel()
        self.connection = SimpleNamespace(ticket=SimpleNamespace(epoch=1))
        self.told: list[tuple[Any, ...]] = []
        self.fails = False

    def skip_handles(self, first: int) -> None:
        """Do nothing: no handles are given here."""

    def tell(self, verb: str, target: Any, name: str, *args: Any) -> None:
        if self.fails:
            raise KeyboardInterrupt
        self.told.append((vars(target).get("name", "config"), name, *args))

    def news(self) -> list[tuple[Any, ...]]:
        """Return what was told since this was asked last."""
        told, self.told = self.told, []
        return told


@pytest.fixture
def pipeline(monkeypatch: pytest.MonkeyPatch) -> Iterator[PlayedPipeline]:
    played = PlayedPipeline()
    session: Any = SimpleNamespace(pipeline=played)
    monkeypatch.setattr(current(), "_parts", {})
    monkeypatch.setattr(dispatch, "tell", played.tell)
    current().adopt(session)
    yield played
    played.fails = False
    planned().enter(None)
    current().adopt(None)


def planned() -> Planning:
    return current().part(Planning)


def _plan(name: str) -> Any:
    plan = object.__new__(transforms.Plan1d)
    object.__setattr__(plan, "name", name)
    return plan


def test_a_plan_is_told_and_taken_back(pipeline: PlayedPipeline) -> None:
    plan, other = _plan("first"), _plan("second")
    assert transforms.get_current_plan() is None
    with plan:
        assert transforms.get_current_plan() is plan
        with other:
            assert transforms.get_current_plan() is other
        assert transforms.get_current_plan() is None  # as in CuPy: leaving any plan leaves all
    assert pipeline.news() == [
        ("first", "__enter__"),
        ("second", "__enter__"),
        ("second", "__exit__", None, None, None),
    ]


def test_each_thread_has_its_own_plan(pipeline: PlayedPipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, str]] = []

    def as_proved(qualname: str, args: Any, kwargs: Any) -> None:
        asked.append((qualname, "proved"))

    def run(qualname: str, args: Any, kwargs: Any, proof: Any) -> None:
        asked.append((qualname, "asked" if isinstance(proof, Unproved) else "?"))

    monkeypatch.setattr(dispatch, "call", as_proved)
    monkeypatch.setattr(dispatch, "run_proved", run)
    fft = make("cupy.fft.fft")
    fft(1)
    with _plan("mine"):
        fft(1)
        thread = threading.Thread(target=fft, args=(1,))
        thread.start()
        thread.join()
        fft(1)
    assert asked == [("cupy.fft.fft", how) for how in ("proved", "asked", "proved", "asked")]
    entered, left = ("mine", "__enter__"), ("mine", "__exit__", None, None, None)
    assert pipeline.news() == [entered, left, entered, left]


def _remote(*shape: int, dtype: str = "D") -> Any:
    return array_core.fresh(current(), contiguous(shape, np.dtype(dtype)), 0)


def test_what_went_well_with_a_plan_goes_well_again(pipeline: PlayedPipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []

    def run(qualname: str, args: Any, kwargs: Any, proof: Any) -> Any:
        asked.append(isinstance(proof, Unproved))
        return args[0] if kwargs.get("overwrite_x") else array_core.fresh(current(), args[0]._layout, 0)

    monkeypatch.setattr(dispatch, "run_proved", run)
    fft, rfft = make("cupyx.scipy.fft.fft"), make("cupyx.scipy.fft.rfft")
    plan, other = _plan("mine"), _plan("other")

    def waits(call: Any, *args: Any, **kwargs: Any) -> bool:
        call(*args, **kwargs)
        return asked.pop()

    assert [waits(fft, _remote(4), plan=plan) for _ in range(2)] == [True, False]
    assert [waits(fft, _remote(4), norm="ortho", plan=plan) for _ in range(2)] == [True, False]
    assert waits(fft, _remote(5), plan=plan)
    assert waits(fft, _remote(4), plan=other)
    assert [waits(fft, _remote(4), overwrite_x=True, plan=plan) for _ in range(2)] == [True, True]
    assert [waits(rfft, _remote(4), plan=plan) for _ in range(2)] == [True, True]  # a warning each time
    with plan:
        assert not waits(fft, _remote(4))
        assert waits(fft, _remote(4), plan=other)  # refused: two plans
    with pytest.warns(DeprecationWarning, match="deprecated"):
        config.enable_nd_planning = False
    assert waits(fft, _remote(4), plan=plan)
    with pytest.warns(DeprecationWarning, match="deprecated"):
        config.enable_nd_planning = True


def test_a_setting_is_deprecated_and_told(pipeline: PlayedPipeline) -> None:
    with pytest.warns(DeprecationWarning, match="enable_nd_planning is deprecated") as seen:
        config.enable_nd_planning = False
    assert seen[0].filename == __file__
    with pytest.warns(DeprecationWarning, match="deprecated") as seen:
        assert config.enable_nd_planning is False
    assert seen[0].filename == __file__
    thread = threading.Thread(target=planned().bring)  # a new thread has a context of its own
    thread.start()
    thread.join()
    assert planned().bring() is False
    with pytest.warns(DeprecationWarning, match="deprecated"):
        config.enable_nd_planning = True
    assert [told[2] for told in pipeline.news()] == [False, True, False, True]


def test_several_gpus_are_told(pipeline: PlayedPipeline) -> None:
    config.use_multi_gpus = True
    with pytest.warns(FutureWarning, match="experimental"):
        config.set_cufft_gpus(2)
    assert config.devices == (0, 1)
    with pytest.warns(FutureWarning, match="experimental"), pytest.raises(ValueError, match="at least 2"):
        config.set_cufft_gpus([0])
    config.use_multi_gpus = False
    assert config.devices is None
    planning.devices.set(None)
    assert pipeline.news() == [
        ("config", "use_multi_gpus", True),
        ("config", "set_cufft_gpus", (0, 1)),
        ("config", "use_multi_gpus", False),
    ]


def test_what_was_cut_short_is_told_again(pipeline: PlayedPipeline) -> None:
    with pytest.raises(KeyboardInterrupt), _plan("mine"):
        pipeline.fails = True
    pipeline.fails = False
    assert transforms.get_current_plan() is None
    pipeline.news()
    planned().bring()
    assert ("mine", "__exit__", None, None, None) in pipeline.news()
    planned().bring()
    assert pipeline.news() == []


def test_a_fresh_executor_knows_nothing(pipeline: PlayedPipeline) -> None:
    with pytest.warns(DeprecationWarning, match="deprecated"):
        config.enable_nd_planning = False
    pipeline.connection.ticket.epoch = 2
    planned().bring()
    with pytest.warns(DeprecationWarning, match="deprecated"):
        config.enable_nd_planning = True
    assert [told[2] for told in pipeline.news()] == [False, False, True]


def test_numpy_arrays_are_refused_as_cupy_does() -> None:
    for name in ("cupy.fft.fft", "cupyx.scipy.fft.irfftn", "cupyx.scipy.fftpack.fft2"):
        with pytest.raises(TypeError, match=r"must be a cupy\.ndarray"):
            make(name)(np.ones(4))
