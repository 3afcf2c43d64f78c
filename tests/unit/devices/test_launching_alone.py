"""A kernel that comes again and again by itself is launched as a graph of one, and nobody can tell."""

from __future__ import annotations

import gc
import sys
import threading
import time

import pytest

from gpu_backend.devices.compiled_launcher import make
from tests.unit.devices.noting_driver import MODULE, OUT_OF_MEMORY, Driver, Refused, end_module, table

#: So often a kernel comes by itself before it has a graph; and so many have one at most.
_WORTH, _MOST_GRAPHS = 16, 32


@pytest.fixture
def driver() -> Driver:
    """Return a driver whose launcher leaves nothing to its thread."""
    made = Driver()
    made.launcher.may_leave = False
    return made


def _launch_each(driver: Driver, functions: list[int]) -> list[tuple[int, int]]:
    """Have kernels launched at once; return them, numbered."""
    content = bytearray(16)
    kernels = {one: driver.kernel(content, one) for one in functions}
    driver.launched.clear()
    for number, one in enumerate(functions):
        content[8:16] = number.to_bytes(8, "little")
        kernels[one]()
    return [(one, number) for number, one in enumerate(functions)]


def _launched(driver: Driver) -> list[tuple[int, int]]:
    return [(function, number) for function, _, number in driver.launched]


def test_it_has_a_graph_once_it_came_often_enough(driver: Driver) -> None:
    assert _launch_each(driver, [16, 32] * 50) == _launched(driver)
    assert {how for _, how, _ in driver.launched} == {(2, 3, 4, 32, 1, 1, 128)}
    assert driver.graphs.alone == 2
    assert driver.graphs.launched_alone == 2 * (50 - _WORTH + 1)
    assert driver.launcher.together == 0


@pytest.mark.parametrize("apart", [1, 16, 1024, 4096, 1 << 20])
def test_it_does_not_matter_how_far_apart_two_lie(driver: Driver, apart: int) -> None:
    assert _launch_each(driver, [1 << 30, (1 << 30) + apart] * 50) == _launched(driver)
    assert driver.graphs.launched_alone == 2 * (50 - _WORTH + 1)


def test_what_is_rare_has_none(driver: Driver) -> None:
    rare = [16 * function for function in range(1, 300)] * (_WORTH // 4)
    assert _launch_each(driver, rare) == _launched(driver)
    assert not driver.graphs.made


def test_of_more_than_have_room_those_have_graphs_that_were_used_last(driver: Driver) -> None:
    many = [16 * function for function in range(1, 2 * _MOST_GRAPHS) for _ in range(2 * _WORTH)]
    assert _launch_each(driver, many) == _launched(driver)
    assert driver.graphs.alone == len(driver.graphs.executables) == _MOST_GRAPHS
    driver.graphs.changed = driver.graphs.launched_alone = 0
    last = many[-_MOST_GRAPHS * 2 * _WORTH :]
    assert _launch_each(driver, last) == _launched(driver)
    assert driver.graphs.changed == 0
    assert driver.graphs.launched_alone == len(last)


def test_many_in_turns_do_not_take_each_others_graphs_each_time(driver: Driver) -> None:
    many = [16 * function for function in range(1, 2 * _MOST_GRAPHS)] * 10 * _WORTH
    assert _launch_each(driver, many) == _launched(driver)
    assert 0 < driver.graphs.changed <= len(many) / _WORTH


@pytest.mark.parametrize("what", ["create", "add", "instantiate", "upload", "launch"])
def test_where_there_is_no_memory_for_it_it_is_launched_without(driver: Driver, what: str) -> None:
    driver.graphs.says[what] = OUT_OF_MEMORY
    assert _launch_each(driver, [16] * 50) == _launched(driver)
    assert driver.graphs.launched_alone == 0
    assert bool(driver.graphs.executables) == (what == "launch")


def test_parameters_that_a_graph_does_not_take_are_launched_without(driver: Driver) -> None:
    driver.graphs.says["set"] = 16
    assert _launch_each(driver, [16, 32] * 50) == _launched(driver)
    assert driver.graphs.launched_alone == 50 - _WORTH + 1
    assert len(driver.graphs.executables) == 2, "one is enough for what it does not take"


def test_a_refusal_is_told_at_once(driver: Driver) -> None:
    _launch_each(driver, [16] * 50)
    driver.graphs.says["launch"] = 719
    with pytest.raises(Refused, match=r"\(719, False, False\)"):
        _launch_each(driver, [16])
    del driver.graphs.says["launch"]
    assert _launch_each(driver, [16]) == _launched(driver)


def test_none_knows_a_kernel_any_longer_that_may_be_unloaded(driver: Driver) -> None:
    _launch_each(driver, [16, 32] * 50)
    end_module()
    assert driver.graphs.executables, "not before it launches again"
    assert _launch_each(driver, [16]) == _launched(driver)
    assert not driver.graphs.executables
    assert not driver.graphs.made
    assert _launch_each(driver, [16] * 50) == _launched(driver)
    assert driver.graphs.alone == 3


def test_nobody_else_runs_until_a_graph_knows_what_it_launches(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a module could end in another thread, and a graph be made of a kernel that is gone."""
    turns, is_over, seen, new = [0], threading.Event(), [], driver.graphs._new

    def count() -> None:
        while not is_over.is_set():
            turns[0] += 1
            time.sleep(0)

    def instantiate() -> int:
        seen.append(turns[0])
        return new()

    others = [threading.Thread(target=count) for _ in range(4)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1000)  # nobody has to let others run who does not want to,
    gc.disable()  # as whatever a collection ends may
    monkeypatch.setattr(driver.graphs, "_new", instantiate)
    kernel = driver.kernel(bytearray(16), 32)
    try:
        for one in others:
            one.start()
        for _ in range(100):
            for _ in range(_WORTH - 1):
                kernel()
            seen.clear()
            begun = turns[0]
            kernel()
            assert set(seen) == {begun}
            end_module()
    finally:
        sys.setswitchinterval(before)
        gc.enable()
        is_over.set()
        for one in others:
            one.join()
    assert turns[0] > 0, "others do run while the driver launches"


def test_a_refusal_of_memory_does_not_last(driver: Driver) -> None:
    driver.graphs.says["instantiate"] = OUT_OF_MEMORY
    _launch_each(driver, [16] * 50)
    driver.graphs.says.clear()
    _launch_each(driver, [16] * 50)
    assert driver.graphs.launched_alone > 30


def test_who_does_not_hear_of_that_has_no_graphs(driver: Driver) -> None:
    made = make(driver.functions, lambda *how: Refused(*how))
    assert made is not None
    driver.launcher = made
    assert _launch_each(driver, [16] * 50) == _launched(driver)
    assert not driver.graphs.alone
    assert made.watch(MODULE)
    _launch_each(driver, [16] * 50)
    assert driver.graphs.alone


def test_blocks_that_wait_for_each_other_go_without(driver: Driver) -> None:
    launch = driver.launcher.tables(((16, 200),), 8, 32, 1, 1)
    for _ in range(50):
        launch(table([1, 2]), 2, 64)
    assert [how[-1] for _, how, _ in driver.launched] == [-1] * 50
    assert not driver.graphs.alone


def test_they_end_with_their_launcher(driver: Driver) -> None:
    _launch_each(driver, [16, 32] * 50)
    assert driver.graphs.executables
    del driver.launcher
    assert not driver.graphs.executables
    assert not driver.graphs.made
