"""Launches that a thread makes: each once, in order, with the parameters that it was given, and before what waits."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_backend import sources
from gpu_backend.devices.compiled_launcher import make
from gpu_backend.devices.launching import MOST_PARAMETERS, Kernel, Launcher

pytestmark = pytest.mark.skipif(
    sources.in_c("gpu_backend.devices._launching") is None, reason="launches are not compiled here"
)

_U, _P = ctypes.c_uint, ctypes.c_void_p
_LaunchKernel = ctypes.CFUNCTYPE(ctypes.c_int, _P, _U, _U, _U, _U, _U, _U, _U, _P, ctypes.POINTER(_P), _P)
_LaunchCooperative = ctypes.CFUNCTYPE(ctypes.c_int, _P, _U, _U, _U, _U, _U, _U, _U, _P, ctypes.POINTER(_P))
_Enter = ctypes.CFUNCTYPE(ctypes.c_int, _P)
_SetStream = ctypes.CFUNCTYPE(ctypes.c_int, _P, _P)
_I = ctypes.c_int
_Gemm = ctypes.CFUNCTYPE(_I, _P, _I, _I, _I, _I, _I, _P, _P, _I, _I, _P, _I, _I, _P, _P, _I, _I, _I, _I)
_CONTEXT = 77
#: What a thread may call that begins late, as a library that is there for good.
_KEPT: list[object] = []
#: What may be asked for.
_MADE = ("launch", "table", "multiply")


class Refused(Exception):
    """What the driver refused."""


class Driver:
    """Stands for the driver: notes what it is given, and by which thread."""

    def __init__(self) -> None:
        #: The function, how it was launched, and the number that its one parameter was.
        self.launched: list[tuple[int, tuple[int, ...], int]] = []
        self.threads: set[int] = set()
        self.entered: list[int] = []
        #: Refuses launches of this function.
        self.refuses = 0
        self._here = threading.get_ident()
        self._may_go_on = threading.Event()
        self._may_go_on.set()
        self._functions = (_LaunchKernel(self._launch), _LaunchCooperative(self._launch_together), _Enter(self._enter))
        _KEPT.append(self._functions)
        at = [ctypes.cast(one, _P).value for one in self._functions]
        made = make(*at, _CONTEXT, lambda *how: Refused(*how))  # type: ignore[arg-type]
        assert made is not None
        self.launcher: Launcher = made

    def _enter(self, context: int) -> int:
        self.entered.append(context)
        return 0

    def _launch(self, function: int, *rest: Any) -> int:
        *how, _, parameters, _ = rest
        return self._note(function, tuple(how), parameters)

    def _launch_together(self, function: int, *rest: Any) -> int:
        *how, _, parameters = rest
        return self._note(function, (*how, -1), parameters)

    def _note(self, function: int, how: tuple[int, ...], parameters: Any) -> int:
        if threading.get_ident() != self._here:
            self._may_go_on.wait()
        self.threads.add(threading.get_ident())
        number = ctypes.cast(parameters[0], ctypes.POINTER(ctypes.c_uint64))[0]
        self.launched.append((function, how, number))
        return 700 if function == self.refuses else 0

    def kernel(self, content: bytearray, function: int = 1, place: int = 8) -> Any:
        """Return what launches a kernel of one parameter, which stands at ``place``."""
        one = Kernel(function, (2, 3, 4), (32, 1, 1), 128, place, place + 8, (place,))
        return self.launcher.kernels((one,), content)

    def product(self) -> Any:
        """Return what multiplies; it is noted as a launch of function -2 of what is written, at the second address."""
        self._library = _Gemm(self._multiply), _SetStream(self._set_stream)
        at = [ctypes.cast(one, _P).value for one in self._library]
        return self.launcher.products(*at, lambda: 55, 8, 16, (0, 1, 3, 4, 5, 0, 7, 8, 9, 68, -1))  # type: ignore[arg-type]

    def _set_stream(self, handle: int, stream: int | None) -> int:
        assert (handle, stream) == (55, None)
        return 0

    def _multiply(self, handle: int, *rest: int) -> int:
        transa, transb, m, n, k, alpha, a, of, lda, b, _, ldb, beta, c, _, ldc, computed, algorithm = rest
        assert (transa, transb, m, n, k, alpha, of, lda, ldb, beta) == (0, 1, 3, 4, 5, 8, 0, 7, 8, 16)
        assert (handle, ldc, computed, algorithm) == (55, 9, 68, -1)
        self.threads.add(threading.get_ident())
        self.launched.append((-2, (b, c), a))
        return 13 if self.refuses == -2 else 0

    def go_on(self) -> None:
        """Hold the thread no more."""
        self._may_go_on.set()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Have the thread be in the middle of a launch, so that whatever else may be is left to it."""
        some, before = self.kernel(bytearray(16), function=99), self.launcher.left
        self._may_go_on.clear()
        self.launcher.begin()
        try:
            while self.launcher.left == before:
                some()
            self.launched.clear()
            self.threads.clear()
            yield
        finally:
            self._may_go_on.set()
        self.launcher.wait()
        self.launched.remove((99, (2, 3, 4, 32, 1, 1, 128), 0))


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
    assert driver.entered == [_CONTEXT]
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
    driver.refuses = 5
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


def test_a_table_is_one_parameter_of_which_only_what_is_used_is_read(driver: Driver) -> None:
    table = bytearray(4096)
    table[:8] = (123).to_bytes(8, "little")
    for waits in (False, True):
        driver.launcher.table(9, 4, 256, table, 16, 4096, waits)
    assert driver.launched == [(9, (4, 1, 1, 256, 1, 1, 0), 123), (9, (4, 1, 1, 256, 1, 1, 0, -1), 123)]
    with pytest.raises(ValueError, match="has not"):
        driver.launcher.table(9, 4, 256, table, 16, 8192, False)


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
    sizes = (4096, 32768, 131072)
    content, table = bytearray(16), bytearray(sizes[-1])
    launch, multiply, count = driver.kernel(content), driver.product(), 0
    for order, times in orders:
        if order in _MADE:
            for _ in range(times):
                if order == "launch":
                    content[8:16] = count.to_bytes(8, "little")
                    launch()
                elif order == "multiply":
                    multiply(1, count, 2, 0)
                else:
                    table[:8] = count.to_bytes(8, "little")
                    driver.launcher.table(2, 1, 1, table, 16, sizes[count % 3], False)
                count += 1
        elif order.startswith("may"):
            driver.launcher.may_leave = order == "may"
        else:
            getattr(driver.launcher, order)()
        if order in ("settle", "hold", "wait"):
            assert len(driver.launched) == count
    driver.launcher.wait()
    assert [number or 0 for *_, number in driver.launched] == list(range(count))
