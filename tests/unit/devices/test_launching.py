"""Launches that a thread makes: each once, in order, with the parameters that it was given, and before what waits."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_backend import sources
from gpu_backend.devices.launching import MOST_PARAMETERS, Kernel
from tests.unit.devices.noting_driver import CONTEXT, Driver, Refused, table

pytestmark = pytest.mark.skipif(
    sources.in_c("gpu_backend.devices._launching") is None, reason="launches are not compiled here"
)

#: What may be asked for.
_MADE = ("launch", "table", "multiply")


@pytest.fixture
def driver() -> Driver:
    return Driver()


def test_each_is_made_at_once_where_none_may_be_left(driver: Driver) -> None:
    content = bytearray(16)
    launch = driver.kernel(content)
    for number in range(100):
        content[8] = number
        launch()
        assert driver.launched[-1] == (1, (2, 3, 4, 32, 1, 1, 128), number)
    assert driver.launcher.left == 0
    assert driver.threads == {threading.get_ident()}


def test_many_in_a_row_are_left_to_a_thread_that_has_entered_the_context(driver: Driver) -> None:
    content = bytearray(16)
    launch = driver.kernel(content)
    with driver.held():
        for number in range(200):
            content[8] = number
            launch()
        content[8] = 0
        assert not driver.launched
    assert [number for *_, number in driver.launched] == list(range(200))
    assert driver.entered == [CONTEXT]
    assert len(driver.threads) == 1
    assert threading.get_ident() not in driver.threads


def test_who_waits_waits_until_all_are_made(driver: Driver) -> None:
    launch = driver.kernel(bytearray(16))
    with driver.held():
        launch()
        threading.Timer(0.02, driver.go_on).start()
        driver.launcher.wait()
        assert len(driver.launched) == 2
        launch()
        driver.launcher.settle()
        assert len(driver.launched) == 3


def test_none_is_left_behind_settle_nor_where_that_may_not_be(driver: Driver) -> None:
    launch = driver.kernel(bytearray(16))
    with driver.held():
        launch()
        driver.go_on()
        driver.launcher.settle()
        left = driver.launcher.left
        for _ in range(50):
            launch()
        driver.launcher.may_leave = False
        driver.launcher.begin()
        for _ in range(50):
            launch()
    assert driver.launcher.left == left
    assert len(driver.launched) == 101


def test_a_refusal_is_told_at_once_or_late(driver: Driver) -> None:
    driver.refuses = driver.graphs.says["set"] = 5
    refused, good = driver.kernel(bytearray(16), function=5), driver.kernel(bytearray(16), function=6)
    with pytest.raises(Refused, match=r"\(700, False, False\)"):
        refused()
    with driver.held():
        refused()
        good()
    assert driver.launched[-1][0] == 5, "what came behind is not launched: nobody knows what it would read"
    driver.launcher.hold()
    for what in (driver.launcher.settle, good, driver.launcher.settle):
        with pytest.raises(Refused, match=r"\(700, True, False\)"):
            what()
    assert driver.launched[-1][0] == 5, "nor at once"


def test_a_context_that_cannot_be_entered_is_told_late(driver: Driver) -> None:
    driver.enters = 201
    launch = driver.kernel(bytearray(16))
    driver.launcher.begin()
    with pytest.raises(Refused, match=r"\(201, True, False\)"):
        _launch_until_left(driver, launch)
    assert len(driver.threads) == 1, "the other one launches nothing"
    with pytest.raises(Refused, match=r"\(201, True, False\)"):
        launch()


def _launch_until_left(driver: Driver, launch: Callable[[], None]) -> None:
    while not driver.launcher.left:
        launch()
    driver.launcher.settle()


def test_a_product_is_refused_as_its_librarys(driver: Driver) -> None:
    multiply = driver.product()
    multiply(10, 20, 30, 0)
    assert driver.launched == [(-2, (10, 30), 20)]
    driver.refuses = -2
    with pytest.raises(Refused, match=r"\(13, False, True\)"):
        multiply(10, 20, 30, 0)
    with driver.held():
        multiply(10, 20, 30, 0)
    with pytest.raises(Refused, match=r"\(13, True, True\)"):
        driver.launcher.settle()
    with pytest.raises(TypeError):
        multiply(1)


def test_a_table_goes_to_the_smallest_kernel_that_has_room(driver: Driver) -> None:
    launch = driver.launcher.tables(((7, 2), (8, 4)), 132, 512, 2, 4096)
    for ops in (1, 2, 3, 4):
        launch(table([0] * 4), ops, 10)
    assert driver.launched == [
        (kernel, (1, 1, 1, 512, 1, 1, 0), ops) for kernel, ops in ((7, 1), (7, 2), (8, 3), (8, 4))
    ]
    for ops in (0, -1, 5):
        with pytest.raises(ValueError, match="no table"):
            launch(table([0] * 5), ops, 10)
    for ops, size in ((3, 16 + 160 * 3), (1, 16 + 160)):  # the driver reads all that the kernel has room for
        with pytest.raises(ValueError, match="no table"):
            launch(table([0])[:size], ops, 10)
    with pytest.raises(TypeError):
        launch(b"", 1, 1)  # type: ignore[arg-type]
    for kernels in ((), ((1, 1),) * 5, (3,), (("x", 1),)):
        with pytest.raises((ValueError, TypeError)):
            driver.launcher.tables(kernels, 132, 512, 2, 4096)  # type: ignore[arg-type]


def test_several_blocks_wait_for_each_other_from_where_they_have_counted_to(driver: Driver) -> None:
    launch = driver.launcher.tables(((7, 2), (8, 4)), 132, 512, 2, 4096)
    launch(table([0] * 4), 3, 4096)
    launch(table([0] * 4), 3, 4097)
    launch(table([0] * 4), 1, 1 << 20)
    launch(table([0] * 4), 2, 1 << 20)
    launch(table([0] * 4), 2, 5000)
    counted = [0, 0, 10, 10, 142]
    assert driver.launched == [
        (8, (1, 1, 1, 512, 1, 1, 0), 3), (8, (5, 1, 1, 512, 1, 1, 0, -1), 3),
        (7, (132, 1, 1, 512, 1, 1, 0), 1 | 10 << 32), (7, (132, 1, 1, 512, 1, 1, 0, -1), 2 | 10 << 32),
        (7, (5, 1, 1, 512, 1, 1, 0, -1), 2 | 142 << 32),
    ]  # fmt: skip
    assert [number >> 32 for *_, number in driver.launched] == counted


def test_several_kernels_follow_each_other_from_one_memory(driver: Driver) -> None:
    content = bytearray(32)
    content[8], content[16] = 1, 2
    steps = [Kernel(at, (1, 1, 1), (1, 1, 1), 0, 8 * at, 8 * at + 8, (8 * at,)) for at in (1, 2)]
    driver.launcher.kernels(tuple(steps), content)()
    assert [(function, number) for function, _, number in driver.launched] == [(1, 1), (2, 2)]


def test_what_lies_nowhere_is_refused(driver: Driver) -> None:
    for first, end, places in (
        (0, 40, (0,)),
        (8, 16, (0,)),
        (16, 8, ()),
        (-8, 8, (0,)),
        (0, 16, tuple([0] * (MOST_PARAMETERS + 1))),
    ):
        with pytest.raises(ValueError, match=r"."):
            driver.launcher.kernels((Kernel(1, (1, 1, 1), (1, 1, 1), 0, first, end, places),), bytearray(32))
    most = Kernel(1, (1, 1, 1), (1, 1, 1), 0, 0, 16, (0,) * MOST_PARAMETERS)
    driver.launcher.kernels((most,), bytearray(16))()
    assert len(driver.launched) == 1
    with pytest.raises(TypeError):
        driver.kernel(bytearray(16))(1)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["begin", "settle", "hold", "wait", "may", "may not", *_MADE]), st.integers(1, 400)),
        max_size=30,
    )
)
def test_in_whatever_order_each_is_launched_once_and_in_its_turn(orders: list[tuple[str, int]]) -> None:
    driver = Driver()
    content, given = bytearray(16), table([0] * 200)
    launches, multiply, count = [driver.kernel(content, one) for one in (1, 2, 3)], driver.product(), 0
    numbers: dict[int, int] = {}
    run = driver.launcher.tables(((4, 4), (5, 24), (6, 200)), 132, 512, 2, 4096)
    for order, times in orders:
        if order in _MADE:
            for _ in range(times):
                if order == "launch":
                    content[8:16] = count.to_bytes(8, "little")
                    launches[count % times % 3]()
                elif order == "multiply":
                    multiply(1, count, 2, 0)
                else:
                    run(given, (3, 20, 150)[count % 3], 1)
                    numbers[count] = (3, 20, 150)[count % 3]
                count += 1
        elif order.startswith("may"):
            driver.launcher.may_leave = order == "may"
        else:
            getattr(driver.launcher, order)()
        if order in ("settle", "hold", "wait"):
            assert len(driver.launched) == count
    driver.launcher.wait()
    assert [number or 0 for *_, number in driver.launched] == [numbers.get(one, one) for one in range(count)]
