"""A driver for launchers that notes what it is asked for: launches, products, and graphs of launches."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar, Token
from typing import Any

from gpu_backend.devices.compiled_launcher import make
from gpu_backend.devices.launching import Driver as Functions
from gpu_backend.devices.launching import Kernel, Launcher
from gpu_backend.devices.segments import HEADER_BYTES, INSTRUCTION_BYTES, WORDS

__all__ = ["CONTEXT", "INVALID", "MODULE", "OUT_OF_MEMORY", "READS", "Driver", "Refused", "end_module", "table"]

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
CONTEXT, OUT_OF_MEMORY, INVALID = 77, 2, 1
#: From here on functions are numbered that are only launched to hold the thread.
HOLDERS = 1 << 40
#: The function that reads: five words are its parameters, where others have one.
READS = 1 << 39
_READING_WORDS = 5
#: Stands for what unloads kernels as it ends: a type of C that is collected, as CuPy's is, and hardly anybody uses.
MODULE = Token
#: What a thread may call that begins late, as a library that is there for good.
_KEPT: list[object] = []


class Refused(Exception):
    """What the driver refused."""


def _number(parameters: Any, place: int = 0) -> int:
    """Return the number that a kernel's parameter is, the first by default."""
    return ctypes.cast(parameters[place], ctypes.POINTER(ctypes.c_uint64))[0]  # type: ignore[no-any-return]


def _given(function: int, parameters: Any) -> Any:
    """Return the number that a kernel's one parameter is, or all that one has which reads."""
    if function != READS:
        return _number(parameters)
    return tuple(_number(parameters, place) for place in range(_READING_WORDS))


class _Graphs:
    """Stands for the driver where it knows graphs: each kernel of one is noted as launched, as by itself."""

    def __init__(self, note: Any) -> None:
        self._note = note
        self._last = 1000
        #: The nodes of graphs, by their number; and by executable one, what each of its nodes launches.
        self.made: dict[int, list[int]] = {}
        self.executables: dict[int, dict[int, tuple[int, tuple[int, ...], int]]] = {}
        self._nodes: dict[int, tuple[int, tuple[int, ...], int]] = {}
        #: How many executable ones were made so far of several kernels, and of one; and which parameters were set of a
        #: kernel that the node did not have.
        self.count, self.alone, self.changed = 0, 0, 0
        #: How many of one kernel were launched.
        self.launched_alone = 0
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
        is_alone = len(self.made[graph]) == 1
        self.count, self.alone = self.count + (not is_alone), self.alone + is_alone
        return 0

    def _upload(self, executable: int, stream: int | None) -> int:
        assert stream is None
        return self.says.get("upload", 0)

    def _set(self, executable: int, node: int, given: Any) -> int:
        what = _what(given[0])
        if self.says.get("set") == what[0]:
            return INVALID
        self.changed += self.executables[executable][node][0] != what[0]
        self.executables[executable][node] = what
        return 0

    def _launch(self, executable: int, stream: int | None) -> int:
        assert stream is None
        if "launch" in self.says:
            return self.says["launch"]
        nodes = self.executables[executable]
        self.launched_alone += len(nodes) == 1
        return max(self._note(*one) for one in nodes.values())

    def _end_executable(self, executable: int) -> int:
        del self.executables[executable]
        return 0

    def _end(self, graph: int) -> int:
        del self.made[graph]
        return 0


def _what(node: Any) -> tuple[int, tuple[int, ...], int]:
    return node.function, (*node.grid, *node.block, node.shared), _given(node.function, node.parameters)


class Driver:
    """Stands for the driver: notes what it is given, and by which thread."""

    def __init__(self) -> None:
        #: The function, how it was launched, and the number that its one parameter was.
        self.launched: list[tuple[int, tuple[int, ...], int]] = []
        self.threads: set[int] = set()
        self.entered: list[int] = []
        #: What it says to who enters a context.
        self.enters = 0
        #: Refuses launches of this function.
        self.refuses = 0
        #: Whether what reads is behind something that takes long.
        self.reads_nothing = False
        self._holders = 0
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
        self.functions = Functions(launch, cooperative, enter, tuple(graphs), CONTEXT)
        made = make(self.functions, lambda *how: Refused(*how))
        assert made is not None
        assert made.watch(MODULE)
        self.launcher: Launcher = made

    def _enter(self, context: int) -> int:
        self.entered.append(context)
        return self.enters

    def _launch(self, function: int, *rest: Any) -> int:
        *how, _, parameters, _ = rest
        return self._note(function, tuple(how), _given(function, parameters))

    def _launch_cooperative(self, function: int, *rest: Any) -> int:
        *how, _, parameters = rest
        return self._note(function, (*how, -1), _number(parameters))

    def _note(self, function: int, how: tuple[int, ...], given: Any) -> int:
        if threading.get_ident() != self._here:
            self._has_begun.set()
            self._may_go_on.wait()
        self.threads.add(threading.get_ident())
        self.launched.append((function, how, given))
        if function == self.refuses:
            return 700
        if function == READS:
            self._read(*given)
        return 0

    def _read(self, address: int, into: int, size: int, mark: int, number: int) -> None:
        """Do what the kernel does, unless it is taken for one that has not begun, or that writes no more."""
        if not self.reads_nothing:
            ctypes.memmove(into, address, size)
            ctypes.c_uint64.from_address(mark).value = number

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
        before = self.launcher.left
        self._may_go_on.clear()
        self._has_begun.clear()
        self.launcher.begin()
        try:
            while self.launcher.left == before:
                self._holders += 1  # another each time: none comes often
                self.kernel(bytearray(16), function=HOLDERS + self._holders)()
            self._has_begun.wait()
            self.launched.clear()
            self.threads.clear()
            yield
        finally:
            self._may_go_on.set()
        self.launcher.wait()
        self.launched.remove((HOLDERS + self._holders, (2, 3, 4, 32, 1, 1, 128), 0))  # the last, which was left to it


def end_module() -> None:
    """Have what unloads kernels end."""
    ContextVar[None]("unloaded").set(None)


def table(numbers: list[int], elements: int = 1) -> bytearray:
    """Return a table of instructions for so many elements; each begins with a number. It has room for 200.

    Each reads what others wrote of the one before.
    """
    numbers = [*numbers, *[0] * (200 - len(numbers))]
    rest = WORDS.pack(
        0, elements, 1, 0, 8, 8, 0, 0, elements, 1, 1, 1, 1000, 1004, 0, 0, *(8, 0, 0, 0) * 2, *(0,) * 8
    )[4:].ljust(INSTRUCTION_BYTES - 4, b"\0")  # fmt: skip
    return bytearray(HEADER_BYTES) + b"".join(number.to_bytes(4, "little") + rest for number in numbers)
