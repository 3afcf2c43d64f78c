"""Random programs over small arrays, run by two clients of which one knows values and the other asks for each."""

from __future__ import annotations

import operator
import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from kernelproxy.client import Client
from kernelproxy.namespace.names import make

DTYPES = "?bBhHiIlLefd"
SHAPES = [(), (1,), (5,), (8,), (3, 4), (4, 3), (2, 1, 3), (0,), (300,)]
BINARY = [
    *("add", "subtract", "multiply", "true_divide", "floor_divide", "remainder", "maximum", "minimum"),
    *("less", "less_equal", "greater", "equal", "not_equal", "logical_and", "logical_xor", "bitwise_and"),
    *("bitwise_or", "bitwise_xor", "left_shift", "right_shift", "power", "hypot"),
]
UNARY = ["negative", "absolute", "square", "sqrt", "floor", "rint", "invert", "logical_not", "isnan", "isfinite", "exp"]
INPLACE = ["iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "iand", "ior", "ixor", "ilshift", "irshift"]
REDUCED = ["sum", "prod", "min", "max", "any", "all", "argmin", "argmax", "cumsum", "mean"]
NUMBERS: list[Any] = [
    *(0, 1, 2, -1, 3, 7, 100, -129, 300, 1 << 31, -(1 << 40), (1 << 63) - 1, 0.0, -0.0, 0.5, 1.5, -2.75, 1e-5, 0.1),
    *(65504.0, 1e30, 1e-310, float("inf"), float("nan"), True, False, np.float32(0.1), np.int8(-3), np.uint16(9)),
    *(np.float64(2.5), np.float16(0.25), np.bool_(True)),
]
KEYS: list[Any] = [
    *(
        0,
        -1,
        2,
        slice(None),
        slice(1, None),
        slice(None, -1),
        slice(None, None, -1),
        slice(None, None, 2),
        Ellipsis,
        None,
    ),
    *((0, 0), (Ellipsis, 1), (slice(None), slice(1, 3)), (None, slice(2))),
]
#: Who is used how often: reads and writes of parts most, for they are what lineages live and end by.
KINDS = [
    *("upload", "make", "view", "view", "shape", "reinterpret", "binary", "binary", "scalar", "scalar", "unary"),
    *("inplace", "inplace", "store", "store", "put", "put", "cast", "reduce", "choose", "select", "mask", "out"),
    *("fill", "kernel", "sort", "set", "join", "forget"),
    *("read", "read", "read", "number", "number", "number", "number"),
]
Step = tuple[str, int, int, int]
#: Where a file lies that a compiler names: in a folder of each executor's own.
_FOLDERS = re.compile(r"/\S*/")
programs: st.SearchStrategy[list[Step]] = st.lists(
    st.tuples(st.sampled_from(KINDS), st.integers(0, 999), st.integers(0, 999), st.integers(0, 999)),
    min_size=5,
    max_size=40,
)


def shown(value: Any) -> object:
    """Return what can be compared of ``value``, to the bit; any NaN is as good as another."""
    if isinstance(value, (int, float)):
        return repr(value)
    host = np.asarray(value)
    if host.dtype.kind == "f":
        host = np.where(np.isnan(host), np.asarray(np.nan, host.dtype), host)
    return type(value).__name__, host.dtype.str, host.shape, host.tobytes()


class Run:
    """One run of a program. ``said`` is all that a user could see of it."""

    def __init__(self, client: Client | None) -> None:
        self.client = client
        self.arrays: list[Any] = []
        self.said: list[object] = []
        self.double = make("cupy.ElementwiseKernel")("", "T x", "x = x + x", "double_in_place")

    def run(self, program: list[Step]) -> list[object]:
        """Carry out ``program`` and return what was said."""
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            self.arrays += [make("cupy.arange")(8), make("cupy.asarray")(np.linspace(-2, 2, 12).reshape(3, 4))]
            for kind, *numbers in program:
                try:
                    self._step(kind, *numbers)
                except Exception as error:  # whatever it is: the other side must raise the same
                    self.said.append((type(error).__name__, _FOLDERS.sub("", str(error))))
            for array in self.arrays:
                self.said.append(shown(array.get()))
        return [*self.said, *((one.category.__name__, str(one.message)) for one in warned)]

    def _step(self, kind: str, a: int, b: int, c: int) -> None:
        found = getattr(self, f"_{kind}")(self.arrays[a % len(self.arrays)], a, b, c)
        if found is not None:
            self.arrays.append(found)
            del self.arrays[:-24]

    def _other(self, number: int) -> Any:
        return self.arrays[number % len(self.arrays)]

    # --- arrays that are made -----------------------------------------------------------------------------------------

    def _upload(self, x: Any, a: int, b: int, c: int) -> Any:
        random = np.random.default_rng(a)
        shape, dtype = SHAPES[b % len(SHAPES)], np.dtype(DTYPES[c % len(DTYPES)])
        host = random.integers(-4, 5, shape).astype(dtype) if a % 3 else (random.random(shape) * 9 - 4).astype(dtype)
        if dtype.kind == "f" and host.size and not a % 5:
            host.reshape(-1)[a % host.size] = [np.nan, -0.0, np.inf, 1e-7][a % 4]
        return make("cupy.asarray")(np.asfortranarray(host) if a % 7 == 0 else host)

    def _make(self, x: Any, a: int, b: int, c: int) -> Any:
        dtype, shape = DTYPES[b % len(DTYPES)], SHAPES[c % len(SHAPES)]
        makers: list[Callable[[], Any]] = [
            lambda: make("cupy.zeros")(shape, dtype),
            lambda: make("cupy.ones")(shape, dtype, order="F"),
            lambda: make("cupy.full")(shape, NUMBERS[c % len(NUMBERS)]),
            lambda: make("cupy.arange")(c % 20, dtype=dtype),
            lambda: make("cupy.arange")(2, 30, 3),
            lambda: make("cupy.arange")(0.0, 1.0, 0.1),
            lambda: make("cupy.eye")(3, 4, c % 3 - 1, dtype),
            lambda: make("cupy.zeros_like")(x),
            lambda: make("cupy.full_like")(x, 3),
        ]
        return makers[a % len(makers)]()

    def _view(self, x: Any, a: int, b: int, c: int) -> Any:
        return x[KEYS[b % len(KEYS)]]

    def _shape(self, x: Any, a: int, b: int, c: int) -> Any:
        return [lambda: x.T, lambda: x.reshape(-1), lambda: x.ravel(), lambda: x[None], lambda: x.squeeze()][b % 5]()

    def _reinterpret(self, x: Any, a: int, b: int, c: int) -> Any:
        return x.view(f"{'iuf'[b % 3]}{x.dtype.itemsize}" if x.dtype.itemsize > 1 else "u1")

    # --- arithmetic ---------------------------------------------------------------------------------------------------

    def _binary(self, x: Any, a: int, b: int, c: int) -> Any:
        return make(f"cupy.{BINARY[c % len(BINARY)]}")(x, self._other(b))

    def _scalar(self, x: Any, a: int, b: int, c: int) -> Any:
        name, number = BINARY[b % len(BINARY)], NUMBERS[c % len(NUMBERS)]
        if not x.size:
            number = 1  # the CPU device refuses, late, some numbers for arrays without elements that CuPy takes
        function = make(f"cupy.{name}")
        return function(number, x) if a % 4 == 0 else function(x, number)

    def _unary(self, x: Any, a: int, b: int, c: int) -> Any:
        return x**2 if b % 12 == 11 else make(f"cupy.{UNARY[b % len(UNARY)]}")(x)

    def _inplace(self, x: Any, a: int, b: int, c: int) -> None:
        operand = self._other(b) if c % 2 else NUMBERS[b % len(NUMBERS)]
        getattr(operator, INPLACE[c % len(INPLACE)])(x, operand)

    def _cast(self, x: Any, a: int, b: int, c: int) -> Any:
        return x.astype(DTYPES[b % len(DTYPES)]) if c % 3 else x.copy()

    def _reduce(self, x: Any, a: int, b: int, c: int) -> Any:
        axis = None if c % 2 or not x.ndim else c % x.ndim
        name = REDUCED[b % len(REDUCED)]
        return getattr(x, name)(axis=axis) if c % 3 else make(f"cupy.{name}")(x)

    def _choose(self, x: Any, a: int, b: int, c: int) -> Any:
        return make("cupy.where")(x > 0, x, NUMBERS[b % len(NUMBERS)] if c % 2 else self._other(b))

    def _select(self, x: Any, a: int, b: int, c: int) -> Any:
        return x[self._other(b)] if c % 3 else make("cupy.take")(x, self._other(b))

    def _join(self, x: Any, a: int, b: int, c: int) -> Any:
        return make("cupy.concatenate")([x, self._other(b)])

    # --- writes -------------------------------------------------------------------------------------------------------

    def _store(self, x: Any, a: int, b: int, c: int) -> None:
        x[KEYS[b % len(KEYS)]] = self._other(c)

    def _put(self, x: Any, a: int, b: int, c: int) -> None:
        x[KEYS[b % len(KEYS)]] = NUMBERS[c % len(NUMBERS)]

    def _mask(self, x: Any, a: int, b: int, c: int) -> None:
        x[x > 0] = NUMBERS[c % len(NUMBERS)]

    def _out(self, x: Any, a: int, b: int, c: int) -> None:
        if b % 2:
            make("cupy.add")(self._other(b), self._other(c), out=x)
        else:
            make("cupy.copyto")(x, self._other(c))

    def _fill(self, x: Any, a: int, b: int, c: int) -> None:
        x.fill(NUMBERS[c % len(NUMBERS)])

    def _kernel(self, x: Any, a: int, b: int, c: int) -> None:
        self.double(x)

    def _sort(self, x: Any, a: int, b: int, c: int) -> None:
        x.sort()

    def _set(self, x: Any, a: int, b: int, c: int) -> None:
        x.set(np.full(x.shape, b % 5, x.dtype))

    def _forget(self, x: Any, a: int, b: int, c: int) -> None:
        if len(self.arrays) > 2:
            del self.arrays[a % len(self.arrays)]

    # --- reads --------------------------------------------------------------------------------------------------------

    def _read(self, x: Any, a: int, b: int, c: int) -> None:
        self.said.append(shown([x.get, lambda: make("cupy.asnumpy")(x), lambda: np.asarray(x.tolist())][b % 3]()))

    def _number(self, x: Any, a: int, b: int, c: int) -> None:
        one = x.reshape(-1)[b % max(1, x.size)]
        self.said.append(shown([lambda: float(one), lambda: int(one), lambda: bool(one), one.item][c % 4]()))
