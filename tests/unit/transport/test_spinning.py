"""How long is spun: longer where it pays, the least where it does not, and never without a processor to spare."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_backend.transport import processors
from gpu_backend.transport.processors import Spare
from gpu_backend.transport.spinning import MOST_SECONDS, Spinning

LEAST = 60e-6


def test_it_grows_to_what_was_waited_for_and_no_further() -> None:
    spinning = Spinning(LEAST, lambda: True)
    grown = []
    for _ in range(20):
        spinning.note(1e-3)
        grown.append(spinning.seconds)
    assert grown == sorted(grown)
    assert 1e-3 <= spinning.seconds < 2e-3


def test_where_no_spinning_could_help_a_tenth_is_spun_at_most() -> None:
    spinning = Spinning(LEAST, lambda: True)
    for _ in range(20):
        spinning.note(5e-3)
    assert spinning.seconds == MOST_SECONDS
    spinning.note(1.0)
    assert spinning.seconds == MOST_SECONDS
    spinning.note(20e-3)
    assert spinning.seconds == pytest.approx(2e-3)
    spinning.note(50e-3)
    assert spinning.seconds == pytest.approx(2e-3), "it is no longer than it paid"


def test_a_program_that_asks_often_and_pauses_in_between_need_not_be_learnt_again_each_time() -> None:
    spinning = Spinning(LEAST, lambda: True)
    for _ in range(3):
        spinning.note(250e-6)
        spinning.note(10e-3)
    assert spinning.seconds >= 250e-6


def test_without_a_processor_to_spare_it_is_the_least() -> None:
    has_spare = True
    spinning = Spinning(LEAST, lambda: has_spare)
    spinning.note(1e-3)
    assert spinning.seconds > LEAST
    has_spare = False
    spinning.note(10e-6)
    assert spinning.seconds == LEAST
    spinning.note(1e-3)
    assert spinning.seconds == LEAST


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans())))
def test_it_stays_within_its_bounds(waits: list[tuple[float, bool]]) -> None:
    now_has = [True]
    spinning = Spinning(LEAST, lambda: now_has[0])
    for waited, has_spare in waits:
        now_has[0] = has_spare
        spinning.note(waited)
        assert LEAST <= spinning.seconds <= MOST_SECONDS
        assert has_spare or spinning.seconds == LEAST


@pytest.mark.parametrize(
    ("cores", "load", "quota", "has"),
    [
        (16, "0.1 0.2 0.3 2/400 99", None, True),
        (16, "0.1 0.2 0.3 8/400 99", "max 100000", True),
        (16, "0.1 0.2 0.3 9/400 99", None, False),
        (16, "0.1 0.2 0.3 2/400 99", "200000 100000", False),
        (16, "0.1 0.2 0.3 2/400 99", "400000 100000", True),
        (2, "0.1 0.2 0.3 1/400 99", None, False),
        (16, "rubbish", None, False),
        (16, None, None, False),
    ],
)
def test_who_spins_leaves_half_of_the_processors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cores: int, load: str | None, quota: str | None, has: bool
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)))
    for name, content in (("load", load), ("quota", quota)):
        if content is not None:
            (tmp_path / name).write_text(content)
    assert Spare(tmp_path / "load", tmp_path / "quota").has() is has


def test_the_answer_holds_for_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(processors, "monotonic", lambda: now[0])
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(16)))
    load = tmp_path / "load"
    load.write_text("0 0 0 1/9 9")
    spare = Spare(load, tmp_path / "none")
    assert spare.has()
    load.write_text("0 0 0 16/90 9")
    assert spare.has()
    now[0] += 1.0
    assert not spare.has()


@pytest.mark.parametrize(
    ("processors", "quota", "threads"),
    [(1, "max 100000", 0), (3, "max 100000", 0), (4, "max 100000", 2), (6, "max 100000", 3), (64, "max 100000", 4),
     (64, "350000 100000", 0), (64, "450000 100000", 2)],
)  # fmt: skip
def test_threads_work_beside_where_there_are_processors_for_them(
    processors: int, quota: str, threads: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(processors)))
    (tmp_path / "quota").write_text(quota)
    assert Spare(tmp_path / "load", tmp_path / "quota").threads_beside(4) == threads
