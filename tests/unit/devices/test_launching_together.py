"""Launches that are given to the driver together: the same ones, in the same order, with the same parameters."""

from __future__ import annotations

import gc
import sys
import threading

import pytest

from gpu_backend import sources
from gpu_backend.devices.compiled_launcher import make
from tests.unit.devices.noting_driver import MODULE, OUT_OF_MEMORY, Driver, Refused, end_module

pytestmark = pytest.mark.skipif(
    sources.in_c("gpu_backend.devices._launching") is None, reason="launches are not compiled here"
)

#: So many go together at most, in one of so many graphs.
_TOGETHER, _MOST_GRAPHS = 8, 32


@pytest.fixture
def driver() -> Driver:
    return Driver()


def _launch_each(driver: Driver, functions: list[int]) -> list[tuple[int, int]]:
    """Have kernels launched one behind the other while the thread has nothing else to do; return them, numbered."""
    contents = {one: bytearray(16) for one in functions}
    kernels = {one: driver.kernel(content, one) for one, content in contents.items()}
    with driver.held():
        for number, one in enumerate(functions):
            contents[one][8:16] = number.to_bytes(8, "little")
            kernels[one]()
    return [(one, number) for number, one in enumerate(functions)]


def _launched(driver: Driver) -> list[tuple[int, int]]:
    return [(function, number) for function, _, number in driver.launched]


def test_those_that_wait_are_launched_together_each_with_its_parameters(driver: Driver) -> None:
    want = _launch_each(driver, [1, 2, 3] * 40)
    assert _launched(driver) == want
    assert {how for _, how, _ in driver.launched} == {(2, 3, 4, 32, 1, 1, 128)}
    assert driver.launcher.together == 120
    assert driver.graphs.count == 3, "they begin in three ways"
    assert _launch_each(driver, [1, 2, 3] * 40) == _launched(driver)
    assert driver.graphs.count <= 6, "and in three others, if the one before went by itself or not"


@pytest.mark.parametrize(("few", "together"), [(1, 0), (2, 2), (3, 2), (4, 4), (5, 4), (6, 6), (7, 6)])
def test_as_many_as_follow_each_other_go_together(driver: Driver, few: int, together: int) -> None:
    assert _launch_each(driver, [1] * few) == _launched(driver)
    assert driver.launcher.together == together
    driver.launched.clear()
    launch, multiply = driver.kernel(bytearray(16)), driver.product()
    with driver.held():
        for _ in range(12):
            for _ in range(few):
                launch()
            multiply(1, 2, 3, 0)
    assert [function for function, *_ in driver.launched] == [*[1] * few, -2] * 12
    assert driver.launcher.together == 13 * together


def test_other_kernels_take_the_graph_that_was_not_used_for_longest(driver: Driver) -> None:
    many = [function for function in range(1, 2 * _MOST_GRAPHS + 1) for _ in range(_TOGETHER)]
    assert _launch_each(driver, many) == _launched(driver)
    assert driver.launcher.together == len(many)
    assert driver.graphs.count == _MOST_GRAPHS
    driver.graphs.changed = 0
    last = many[-_MOST_GRAPHS * _TOGETHER :]
    assert _launch_each(driver, last) == _launched(driver)
    assert driver.graphs.changed == 0, "those that were used last are still there"


@pytest.mark.parametrize("what", ["create", "add", "instantiate", "upload"])
def test_where_the_driver_makes_no_graph_each_is_launched_by_itself(driver: Driver, what: str) -> None:
    driver.graphs.says[what] = OUT_OF_MEMORY
    assert _launch_each(driver, [1, 2] * 40) == _launched(driver)
    assert driver.launcher.together == 0
    assert not driver.graphs.executables
    if what in ("create", "add"):
        assert not driver.graphs.made


def test_what_a_graph_does_not_take_is_launched_by_itself(driver: Driver) -> None:
    driver.graphs.says["set"] = 2
    functions = [1] * 16 + [2] + [1] * 15
    for _ in range(2):
        assert _launch_each(driver, functions) == _launched(driver)
    assert driver.launcher.together == 48, "all but the eight with the one"
    del driver.graphs.says["set"]
    assert _launch_each(driver, functions) == _launched(driver)
    assert driver.launcher.together == 80


def test_a_graph_that_is_refused_is_told_late_but_for_want_of_memory(driver: Driver) -> None:
    driver.graphs.says["launch"] = OUT_OF_MEMORY
    assert _launch_each(driver, [1, 2] * 40) == _launched(driver)
    driver.graphs.says["launch"] = 719
    _launch_each(driver, [1, 2] * 40)
    assert not driver.launched, "nothing behind what was refused"
    with pytest.raises(Refused, match=r"\(719, True, False\)"):
        driver.launcher.settle()


def test_no_graph_knows_a_kernel_any_longer_that_may_be_unloaded() -> None:
    driver, other = Driver(), Driver()
    for one in (driver, other):
        assert one.launcher.watch(MODULE)
        assert _launch_each(one, [1, 2] * 40) == _launched(one)
    made, others = driver.graphs.count, list(other.graphs.executables)
    with driver.held():
        launch = driver.kernel(bytearray(16))
        for _ in range(40):
            launch()
        threading.Timer(0.02, lambda: (gc.collect(), driver.go_on())).start()
        held = sys.getrefcount(driver.launcher)
        end_module()
        now_held = sys.getrefcount(driver.launcher)
        assert now_held == held
        assert len(driver.launched) == 41, "what is queued may be of what is unloaded"
    assert _launch_each(driver, [1, 2] * 40) == _launched(driver)
    assert driver.graphs.count > made
    assert len(driver.graphs.executables) < driver.graphs.count + driver.graphs.alone
    assert list(other.graphs.executables) == others, "not before it launches again"
    assert _launch_each(other, [1, 2] * 40) == _launched(other)
    assert not set(others) & set(other.graphs.executables)
    with pytest.raises(TypeError, match="the one type"):
        driver.launcher.watch(int)


def test_what_is_left_of_graphs_ends_with_their_launcher(driver: Driver) -> None:
    _launch_each(driver, [1, 2, 3] * 40)
    assert driver.graphs.made
    assert driver.graphs.executables
    del driver.launcher
    assert not driver.graphs.made
    assert not driver.graphs.executables


def test_without_hearing_of_it_none_are_launched_together(driver: Driver) -> None:
    made = make(driver.functions, lambda *how: Refused(*how))
    assert made is not None
    driver.launcher = made
    assert _launch_each(driver, [1, 2] * 40) == _launched(driver)
    assert made.together == 0
