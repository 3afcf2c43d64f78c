"""Kernels of the user's recur in C with other arrays and other numbers, and nobody can tell."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_backend.executor.heap import Kind
from gpu_backend.executor.program import direct
from gpu_backend.wire.messages import Op
from gpu_backend.wire.values import Ref, Scalar, Tuple, Value
from tests.unit.executor.program.played import window
from tests.unit.executor.program.test_recurring import TURNS, WAYS, notebook, recurring


@pytest.fixture(autouse=True)
def wanted_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Capture what comes for the second time."""
    monkeypatch.setattr(direct, "_WANTED", 2)


SOURCE = """
extern "C" __global__ void given(double* y, long long n, double a, bool is_less, unsigned char b, float c, int m) {
    int i = threadIdx.x;
    y[i] = y[i] + (is_less ? -a : a) * n + b - c + m;
}
"""


def scalars(dtype: str, values: st.SearchStrategy[Any]) -> st.SearchStrategy[Value]:
    return values.map(lambda value: Scalar(np.dtype(dtype).str, np.dtype(dtype).type(value).tobytes()))


def whole(most: int) -> st.SearchStrategy[int]:
    return st.integers(-most, most) | st.sampled_from([0, most])


GIVEN = st.tuples(
    whole(1 << 62) | scalars("i8", whole(1 << 40)) | scalars("u8", st.integers(0, (1 << 64) - 1)),
    st.floats(-1e3, 1e3) | scalars("f8", st.floats(-1e3, 1e3)),
    st.booleans() | scalars("?", st.booleans()),
    scalars("u1", st.integers(0, 255)),
    scalars("f4", st.floats(-100, 100, width=32)),
    scalars("i4", whole((1 << 31) - 1)),
)


@settings(deadline=None, max_examples=60)
@given(st.lists(GIVEN, min_size=6, max_size=12))
def test_what_a_kernel_is_given_may_be_another_number_each_time(each: list[tuple[Value, ...]]) -> None:
    found = []
    for way in WAYS:
        on = notebook(way)
        device: Any = on.device
        on.stream.heap.put(10, device.resolve("cupy.RawKernel")(SOURCE, "given"), Kind.KERNEL)
        on.stream.heap.put(50, np.zeros(4))
        line = device.resolve("cupy.ElementwiseKernel")("T x, int32 n, T a", "T y", "y = a * x + n", "line")
        on.stream.heap.put(11, line, Kind.KERNEL)
        ops = [Op(".call", 0, (Ref(10), Tuple((1,)), Tuple((4,)), Tuple((Ref(50), *numbers)))) for numbers in each]
        assert not on.run(*ops)
        found.append(on.contents(Ref(50)).tobytes())
        answers = on.run(*(Op(".call", 60, (Ref(11), Ref(50), one[0], one[1]), (60,)) for one in each))
        found[-1] += repr([answer.error and answer.error.caused_by for answer in answers]).encode()
    assert found[0] == found[1] == found[2]


def test_a_kernel_that_is_given_another_number_each_time_recurs() -> None:
    on = notebook()
    device: Any = on.device
    on.stream.heap.put(10, device.resolve("cupy.RawKernel")(SOURCE, "given"), Kind.KERNEL)
    on.stream.heap.put(50, np.zeros(4))
    wide = Scalar("<u8", np.uint64(1 << 32).tobytes())  # may be an address, so it is told apart by its bits
    for turn, first in ((0, 0), (1, 0), (2, wide)):
        others = (0.5, False, Scalar("|u1", b"\0"), Scalar("<f4", bytes(4)), Scalar("<i4", bytes(4)))
        numbers = [first if first else turn * 100 + one for one in range(20)]
        before = recurring(on).launched
        assert not on.run(
            *(Op(".call", 0, (Ref(10), Tuple((1,)), Tuple((4,)), Tuple((Ref(50), one, *others)))) for one in numbers)
        )
        assert recurring(on).launched - before >= (20 if turn == 1 else 16)
    assert on.contents(Ref(50))[0] == 0.5 * (sum(range(20)) + sum(range(100, 120)) + 20 * (1 << 32))


def test_kernels_of_the_users_recur_each_for_itself() -> None:
    found = []
    for way in WAYS:
        on, results = notebook(way), []
        device: Any = on.device
        for handle, code in ((10, "y = x * k"), (11, "y = x - k")):
            made = device.resolve("cupy.ElementwiseKernel")("T x, T k", "T y", code, f"of_{handle}")
            on.stream.heap.put(handle, made, Kind.KERNEL)
        for turn in range(TURNS):
            ops = [
                Op(".call", 100 + 10 * turn + at, (Ref(kernel), array, number), (90 + 10 * turn + at,))
                for at, (kernel, array, number) in enumerate(
                    [(10, Ref(3), 2.0), (11, Ref(3), 2.0), (10, Ref(4), 3.0), (10, window(1, turn % 2), 2.0)]
                    + [(10, Ref(4), Scalar("<f8", np.float64(one).tobytes())) for one in (0.5, 1.5)]
                )
            ]
            assert not on.run(*ops)
            results.append([on.contents(Ref(op.out)).tobytes() for op in ops])
        assert way != "recurring" or recurring(on).launched >= 10
        on.stream.heap.put(10, on.stream.heap.objects[11], Kind.KERNEL)  # another stands there
        on.run(Op(".call", 900, (Ref(10), Ref(3), 2.0)))
        results.append(on.contents(Ref(900)).tobytes())
        found.append(results)
    assert found[0] == found[2]
    assert found[0][:-1] == found[1][:-1]
    assert found[0][-1] == np.arange(1.0, 7.0).tobytes()
