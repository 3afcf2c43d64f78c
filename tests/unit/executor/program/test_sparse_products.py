"""Products of sparse matrices go to the device's library as long as the matrix is what it was, or CuPy's way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpu_backend.executor.config import PASSES
from gpu_backend.wire.messages import Op, Want
from gpu_backend.wire.values import Ref, Value, View
from tests.unit.executor.program.numpy_products import MultiplyingCpu
from tests.unit.executor.program.played import PlayedNotebook

VECTOR, MATRIX, MADE = 51, 52, 70
HALF = View(VECTOR, 0, (3,), (8,), "<f8", "C")
GAPS = View(VECTOR, 0, (3,), (16,), "<f8", "C")


def notebook(passes: tuple[str, ...] = PASSES) -> tuple[PlayedNotebook, MultiplyingCpu]:
    """Return a notebook with a vector of 6 and a sparse matrix of 2 by 3."""
    device = MultiplyingCpu()
    on = PlayedNotebook(passes, device)
    table = View(40, 0, (2, 3), (24, 8), "<f8", "C")
    on.run(Op("cupy.arange", 40, (0.0, 6.0)), Op("cupy.arange", VECTOR, (1.0, 7.0)))
    assert not on.run(Op("cupyx.scipy.sparse.csr_matrix", MATRIX, (table,)))
    return on, device


def product(out: int, given: Value, method: str = "__matmul__", matrix: int = MATRIX) -> Op:
    return Op(".method", out, (Ref(matrix), method, given))


@pytest.mark.parametrize("method", ["__matmul__", "dot"])
def test_a_product_is_one_call_into_memory_of_its_own(method: str) -> None:
    on, device = notebook()
    on.run(product(MADE, HALF, method), product(MADE + 1, HALF, method), Op(".nothing", 0, (), (MADE,)))
    assert device.multiplied_sparse.calls == 2
    assert device.multiplied_sparse.asked == 1
    assert MADE + 1 not in on.stream.heap.objects, "nobody needs the array yet"
    assert on.contents(Ref(MADE + 1)).tolist() == [8.0, 26.0]
    assert ("", "given to the library of products", 2) in on.stream.ways()


def test_what_is_gathered_is_computed_first() -> None:
    on, device = notebook()
    on.run(Op("cupy.add", 60, (HALF, HALF)), product(MADE, Ref(60)), Op("cupy.add", 61, (Ref(MADE), 1.0)))
    assert device.multiplied_sparse.calls == 1
    assert on.contents(Ref(61)).tolist() == [17.0, 53.0]


def test_a_matrix_is_looked_at_when_what_may_write_it_is_launched(monkeypatch: pytest.MonkeyPatch) -> None:
    on, device = notebook()
    looks, look = [], device.multiplied_sparse.product

    def counted(*args: Any) -> Any:
        assert on.stream._direct is not None
        assert on.stream._direct.segment is not None
        looks.append((on.stream._direct.segment.table.gathered, on.stream._direct.segment.table.ops))
        return look(*args)

    monkeypatch.setattr(device.multiplied_sparse, "product", counted)
    on.run(Op("cupy.add", 60, (Ref(VECTOR), 1.0)), product(MADE, HALF))
    assert looks == [(1, 0)]


def test_a_matrix_that_has_other_arrays_is_looked_at_again() -> None:
    on, device = notebook()
    on.run(product(MADE, HALF))
    assert not on.run(Op(".method", 80, (Ref(MATRIX), "tocsr")))  # the same matrix under another handle
    assert not on.run(Op("cupy.ones", 81, (5,)), Op(".setattr", 0, (Ref(80), "data", Ref(81))))
    on.run(product(MADE + 1, HALF))
    assert on.contents(Ref(MADE + 1)).tolist() == [5.0, 6.0]
    assert device.multiplied_sparse.asked == device.multiplied_sparse.calls == 2


def test_a_handle_that_stands_for_another_matrix_is_that_one() -> None:
    on, _ = notebook()
    on.run(product(MADE, HALF), Op(".nothing", 0, (), (MATRIX,)))
    on.run(Op("cupyx.scipy.sparse.csr_matrix", MATRIX, (View(VECTOR, 0, (2, 3), (24, 8), "<f8", "C"),)))
    on.run(product(MADE + 1, HALF))
    assert on.contents(Ref(MADE + 1)).tolist() == [14.0, 32.0]


@pytest.mark.parametrize(
    "op",
    [
        product(MADE, GAPS), product(MADE, Ref(VECTOR)), product(MADE, 2.0, "__mul__"),
        product(MADE, HALF, "__matmul__", VECTOR), Op(".method", MADE, (Ref(MATRIX), "sum")),
        Op(".method", MADE, (Ref(MATRIX), "dot"), kwargs={"other": HALF}),
    ],
)  # fmt: skip
def test_what_is_no_such_product_goes_cupys_way(op: Op) -> None:
    on, device = notebook()
    plain, _ = notebook(())
    answers = [one.run(op, Op(".same", 0, (Ref(MADE),), None, Want.DESCRIPTION)) for one in (on, plain)]
    assert not device.multiplied_sparse.calls
    assert [one.error and one.error.kind for one in answers[0]] == [one.error and one.error.kind for one in answers[1]]


def test_where_memory_is_short_cupy_tries_itself() -> None:
    on, device = notebook()
    device.multiplied_sparse.scratch_bytes = 1 << 60
    on.run(product(MADE, HALF))
    assert not device.multiplied_sparse.calls
    np.testing.assert_array_equal(on.contents(Ref(MADE)), [8.0, 26.0])


def test_only_the_last_few_hundred_products_are_remembered() -> None:
    on, device = notebook()
    for number in range(300):
        given = 100 + number
        on.run(Op("cupyx.scipy.sparse.csr_matrix", given, (View(40, 0, (2, 3), (24, 8), "<f8", "C"),)))
        on.run(product(MADE, HALF, matrix=given), Op(".nothing", 0, (), (MADE, given)))
    direct = on.stream._direct
    assert direct is not None
    assert direct.products is not None
    assert direct.products.done == device.multiplied_sparse.calls == 300
    assert len(direct.products._sparse._known) <= 256  # type: ignore[union-attr]
