"""Launches that a thread makes: each once, in order, with the parameters that it was given, and before what waits.

Also where several are given to the driver together.
"""

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
from gpu_backend.devices.launching import Driver as Functions
from gpu_backend.devices.segments import HEADER_BYTES, INSTRUCTION_BYTES

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
_AT, _Size = ctypes.POINTER(_P), ctypes.c_size_t


class _Node(ctypes.Structure):
    """``CUDA_KERNEL_NODE_PARAMS_v1``."""

    _fields_ = [
        ("function", _P), ("grid", _U * 3), ("block", _U * 3), ("shared", _U),
        ("parameters", ctypes.POINTER(_P)), ("extra", _P),
    ]  # fmt: skip


_One = ctypes.CFUNCTYPE(_I, _P)
_Two = ctypes.CFUNCTYPE(_I, _P, _P)
_Create = ctypes.CFUNCTYPE(_I, _AT, _U)
_Add = ctypes.CFUNCTYPE(_I, _AT, _P, _AT, _Size, ctypes.POINTER(_Node))
_Instantiate = ctypes.CFUNCTYPE(_I, _AT, _P, ctypes.c_ulonglong)
_Set = ctypes.CFUNCTYPE(_I, _P, _P, ctypes.POINTER(_Node))
_CONTEXT, _OUT_OF_MEMORY, _INVALID = 77, 2, 1
#: Stands for what unloads kernels as it ends: a type of C that hardly anybody uses.
_Module = type(iter(bytearray()))
#: So many go together at most, in one of so many graphs.
_TOGETHER, _MOST_GRAPHS = 8, 32
#: What a thread may call that begins late, as a library that is there for good.
_KEPT: list[object] = []
#: What may be asked for.
_MADE = ("launch", "table", "multiply")


class Refused(Exception):
    """What the driver refused."""


def _number(parameters: Any) -> int:
    """Return the number that a kernel's first parameter is."""
    return parameters if type(parameters) is int else ctypes.cast(parameters[0], ctypes.POINTER(ctypes.c_uint64))[0]


class _Graphs:
    """Stands for the driver where it knows graphs: each kernel of one is noted as launched, as by itself."""

    def __init__(self, note: Any) -> None:
        self._note = note
        self._last = 1000
        #: The nodes of graphs, by their number; and by executable one, what each of its nodes launches.
        self.made: dict[int, list[int]] = {}
        self.executables: dict[int, dict[int, tuple[int, tuple[int, ...], int]]] = {}
        self._nodes: dict[int, tuple[int, tuple[int, ...], int]] = {}
        #: How many executable ones were made so far; which parameters were set of a kernel that the node did not have.
        self.count, self.changed = 0, 0
        #: What the driver says of each of these from now on, in place of doing it.
        self.says: dict[str, int] = {}

    def functions(self) -> tuple[Any, ...]:
        return (
            _Create(self._create), _Add(self._add), _Instantiate(self._instantiate), _Two(self._upload),
            _Set(self._set), _Two(self._launch), _One(self._end_executable), _One(self._end),
        )  # fmt: skip

    def _new(self) -> int:
        self._last += 1
        return self._last

    def _create(self, into: Any, flags: int) -> int:
        if "create" not in self.says:
            into[0] = self._new()
            self.made[into[0]] = []
        return self.says.get("create", 0)

    def _add(self, into: Any, graph: int, behind: Any, count: int, node: Any) -> int:
        if "add" in self.says:
            return self.says["add"]
        nodes = self.made[graph]
        assert [behind[at] for at in range(count)] == nodes[-1:], "one behind the other"
        into[0] = self._new()
        nodes.append(into[0])
        self._nodes[into[0]] = _what(node[0])
        return 0

    def _instantiate(self, into: Any, graph: int, flags: int) -> int:
        if "instantiate" in self.says:
            return self.says["instantiate"]
        into[0] = self._new()
        self.executables[into[0]] = {one: self._nodes[one] for one in self.made[graph]}
        self.count += 1
        return 0

    def _upload(self, executable: int, stream: int | None) -> int:
        assert stream is None
        return self.says.get("upload", 0)

    def _set(self, executable: int, node: int, given: Any) -> int:
        what = _what(given[0])
        if self.says.get("set") == what[0]:
            return _INVALID
        self.changed += self.executables[executable][node][0] != what[0]
        self.executables[executable][node] = what
        return 0

    def _launch(self, executable: int, stream: int | None) -> int:
        assert stream is None
        if "launch" in self.says:
            return self.says["launch"]
        return max(self._note(*one) for one in self.executables[executable].values())

    def _end_executable(self, executable: int) -> int:
        del self.executables[executable]
        return 0

    def _end(self, graph: int) -> int:
        del self.made[graph]
        return 0


def _what(node: Any) -> tuple[int, tuple[int, ...], int]:
    return node.function, (*node.grid, *node.block, node.shared), _number(node.parameters)


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
        self._may_go_on, self._has_begun = threading.Event(), threading.Event()
        self._may_go_on.set()
        self.graphs = _Graphs(self._note)
        functions = (
            _LaunchKernel(self._launch), _LaunchCooperative(self._launch_cooperative), _Enter(self._enter),
            *self.graphs.functions(),
        )  # fmt: skip
        _KEPT.append(functions)
        launch, cooperative, enter, *graphs = [ctypes.cast(one, _P).value or 0 for one in functions]
        self.functions = Functions(launch, cooperative, enter, tuple(graphs), _CONTEXT)
        made = make(self.functions, lambda *how: Refused(*how))
        assert made is not None
        assert made.watch(_Module)
        self.launcher: Launcher = made

    def _enter(self, context: int) -> int:
        self.entered.append(context)
        return 0

    def _launch(self, function: int, *rest: Any) -> int:
        *how, _, parameters, _ = rest
        return self._note(function, tuple(how), parameters)

    def _launch_cooperative(self, function: int, *rest: Any) -> int:
        *how, _, parameters = rest
        return self._note(function, (*how, -1), parameters)

    def _note(self, function: int, how: tuple[int, ...], parameters: Any) -> int:
        if threading.get_ident() != self._here:
            self._has_begun.set()
            self._may_go_on.wait()
        self.threads.add(threading.get_ident())
        self.launched.append((function, how, _number(parameters)))
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
        self._has_begun.clear()
        self.launcher.begin()
        try:
            while self.launcher.left == before:
                some()
            self._has_begun.wait()
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


def _table(numbers: list[int], elements: int = 1) -> bytearray:
    """Return a table of instructions for so many elements; each begins with a number."""
    rest = elements.to_bytes(4, "little") + bytes(INSTRUCTION_BYTES - 8)
    return bytearray(HEADER_BYTES) + b"".join(number.to_bytes(4, "little") + rest for number in numbers)


def test_a_table_goes_to_the_smallest_kernel_that_has_room(driver: Driver) -> None:
    launch = driver.launcher.tables(((7, 2), (8, 4)), 132, 512, 2, 4096)
    for ops in (1, 2, 3, 4):
        launch(_table([0] * 4), ops, 10)
    assert driver.launched == [
        (kernel, (1, 1, 1, 512, 1, 1, 0), ops) for kernel, ops in ((7, 1), (7, 2), (8, 3), (8, 4))
    ]
    for ops in (0, -1, 5):
        with pytest.raises(ValueError, match="no table"):
            launch(_table([0] * 5), ops, 10)
    with pytest.raises(ValueError, match="no table"):
        launch(_table([0] * 2), 3, 10)
    with pytest.raises(TypeError):
        launch(b"", 1, 1)  # type: ignore[arg-type]
    for kernels in ((), ((1, 1),) * 5, (3,), (("x", 1),)):
        with pytest.raises((ValueError, TypeError)):
            driver.launcher.tables(kernels, 132, 512, 2, 4096)  # type: ignore[arg-type]


def test_several_blocks_wait_for_each_other_from_where_they_have_counted_to(driver: Driver) -> None:
    launch = driver.launcher.tables(((7, 2), (8, 4)), 132, 512, 2, 4096)
    launch(_table([0] * 4), 3, 4096)
    launch(_table([0] * 4), 3, 4097)
    launch(_table([0] * 4), 1, 1 << 20)
    launch(_table([0] * 4), 2, 1 << 20)
    launch(_table([0] * 4), 2, 5000)
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
    driver.graphs.says[what] = _OUT_OF_MEMORY
    assert _launch_each(driver, [1, 2] * 40) == _launched(driver)
    assert driver.launcher.together == 0
    assert not driver.graphs.executables


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
    driver.graphs.says["launch"] = _OUT_OF_MEMORY
    assert _launch_each(driver, [1, 2] * 40) == _launched(driver)
    driver.graphs.says["launch"] = 719
    _launch_each(driver, [1, 2] * 40)
    assert not driver.launched, "nothing behind what was refused"
    with pytest.raises(Refused, match=r"\(719, True, False\)"):
        driver.launcher.settle()


def test_no_graph_knows_a_kernel_any_longer_that_may_be_unloaded() -> None:
    driver, other = Driver(), Driver()
    for one in (driver, other):
        assert one.launcher.watch(_Module)
        assert _launch_each(one, [1, 2] * 40) == _launched(one)
    made, others = driver.graphs.count, list(other.graphs.executables)
    with driver.held():
        launch = driver.kernel(bytearray(16))
        for _ in range(40):
            launch()
        threading.Timer(0.02, driver.go_on).start()
        iter(bytearray())
        assert len(driver.launched) == 41, "what is queued may be of what is unloaded"
    assert _launch_each(driver, [1, 2] * 40) == _launched(driver)
    assert driver.graphs.count > made
    assert len(driver.graphs.executables) < driver.graphs.count
    assert list(other.graphs.executables) == others, "not before it launches again"
    assert _launch_each(other, [1, 2] * 40) == _launched(other)
    assert not set(others) & set(other.graphs.executables)
    with pytest.raises(TypeError, match="the one type"):
        driver.launcher.watch(int)


def test_without_hearing_of_it_none_are_launched_together(driver: Driver) -> None:
    made = make(driver.functions, lambda *how: Refused(*how))
    assert made is not None
    driver.launcher = made
    assert _launch_each(driver, [1, 2] * 40) == _launched(driver)
    assert made.together == 0


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
    content, table = bytearray(16), _table([0] * 200)
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
                    run(table, (3, 20, 150)[count % 3], 1)
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
