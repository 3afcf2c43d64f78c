"""Products of sparse matrices and vectors past CuPy's handling of arguments give CuPy's own bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpu_backend.executor.config import PASSES
from gpu_backend.executor.heap import Kind
from gpu_backend.wire.messages import Op, Want
from gpu_backend.wire.values import Ref, Tuple, View
from tests.unit.executor.program.played import PlayedNotebook

pytestmark = pytest.mark.gpu

ROWS, COLUMNS = 300, 200
VECTORS, MATRIX, MADE, SPARE = 1, 2, 100, 200


class Both:
    """The same ops with all passes and with none, on vectors of whole numbers, whose sums are the same in any order."""

    def __init__(self, matrix: Any, dtype: np.dtype[Any], is_whole: bool = True) -> None:
        from gpu_backend.devices.cuda import CudaDevice

        device = CudaDevice()
        numbers = 3 * np.random.default_rng(3).normal(size=(8, COLUMNS))
        numbers = (np.rint(numbers) if is_whole else numbers).astype(dtype)
        self.on, self.plain = (PlayedNotebook(passes, device) for passes in (PASSES, ()))
        for one in (self.on, self.plain):
            one.stream.heap.put(VECTORS, device.upload(numbers))
            one.stream.heap.ownership.own(VECTORS)
            one.stream.heap.put(MATRIX, matrix.copy(), Kind.MATRIX)
        self.require_same(product(row(0, dtype)))  # CuPy looks whether each element stands once, and notes it
        self.before = self._done()

    @property
    def done(self) -> int:
        """How many products went past CuPy's handling of arguments since."""
        return self._done() - self.before

    def _done(self) -> int:
        assert self.on.stream._direct is not None
        assert self.on.stream._direct.products is not None
        return self.on.stream._direct.products.done

    def run(self, *ops: Op) -> None:
        answers = [[answer.error for answer in one.run(*ops)] for one in (self.on, self.plain)]
        assert answers[0] == answers[1]

    def require_same(self, op: Op) -> None:
        """Have an op give the same bits in both, and drop what it made."""
        self.run(op)
        told = [one.run(Op(".same", 0, (Ref(MADE),), want=Want.CONTENTS))[0] for one in (self.on, self.plain)]
        assert [one.error and one.error.kind for one in told] == [told[1].error and told[1].error.kind] * 2
        if told[1].error is None:
            assert self.on.contents(Ref(MADE)).tobytes() == self.plain.contents(Ref(MADE)).tobytes(), op.args
        self.run(Op(".nothing", 0, (), (MADE,)))


def row(number: int, dtype: np.dtype[Any], count: int = COLUMNS, skipped: int = 0) -> View:
    size = dtype.itemsize
    return View(VECTORS, (number * COLUMNS + skipped) * size, (count,), (size,), dtype.str, "C")


def product(given: View | Ref, method: str = "__matmul__") -> Op:
    return Op(".method", MADE, (Ref(MATRIX), method, given))


def made(kind: str, code: str, indices: str = "i") -> tuple[Any, np.dtype[Any]]:
    """Return a matrix of small whole numbers; and its dtype."""
    from cupyx.scipy import sparse

    dtype = np.dtype(code)
    table = np.random.default_rng(1).integers(-4, 5, size=(ROWS, COLUMNS)) * (np.arange(COLUMNS) % 3 == 0)
    matrix = getattr(sparse, kind)(_on_device(table.astype(dtype)))
    matrix.indices, matrix.indptr = matrix.indices.astype(indices), matrix.indptr.astype(indices)
    return matrix, dtype


def _on_device(host: np.ndarray[Any, Any]) -> Any:
    import cupy

    return cupy.asarray(host)


@pytest.mark.parametrize("code", ["<f4", "<f8", "<c8", "<c16"])
@pytest.mark.parametrize("kind", ["csr_matrix", "csc_matrix", "csr_array", "csc_array"])
def test_products_give_cupys_bits(kind: str, code: str) -> None:
    matrix, dtype = made(kind, code)
    both = Both(matrix, dtype)
    for number in range(4):
        for method in ("__matmul__", "dot"):
            both.require_same(product(row(number, dtype), method))
    both.require_same(product(row(1, dtype, skipped=1)))  # begins where no vector of four does
    assert both.done == 9
    both.require_same(product(row(0, dtype), "__mul__"))  # of an array each element by each
    assert both.done == 9 + kind.endswith("matrix")


@pytest.mark.parametrize("indices", ["i", "l"])
def test_sums_are_in_cupys_order(indices: str) -> None:
    matrix, dtype = made("csr_matrix", "<f8", indices)
    both = Both(matrix, dtype, is_whole=False)
    for number in range(8):
        both.require_same(product(row(number, dtype)))
    assert both.done == 8


def test_memory_that_held_no_number_shows_nowhere() -> None:
    matrix, dtype = made("csr_matrix", "<f8")
    both = Both(matrix, dtype)
    for one in range(3):
        both.run(Op("cupy.full", SPARE, (ROWS, float("nan"))), Op("cupy.add", SPARE + 1, (Ref(SPARE), 1.0), (SPARE,)))
        both.run(Op(".nothing", 0, (), (SPARE + 1,)))
        both.require_same(product(row(one, dtype)))
    assert both.done == 3


def test_a_matrix_that_is_changed_is_multiplied_as_it_is() -> None:
    matrix, dtype = made("csr_matrix", "<f8")
    both = Both(matrix, dtype)

    def twice() -> None:
        for number in range(2):
            both.require_same(product(row(number, dtype)))

    twice()
    both.run(Op(".getattr", SPARE, (Ref(MATRIX), "data")), Op("cupy.multiply", 0, (Ref(SPARE), 3.0, Ref(SPARE))))
    twice()
    both.run(Op(".method", SPARE + 1, (Ref(MATRIX), "tocsr")), Op("cupy.cos", SPARE + 2, (Ref(SPARE),)))
    both.run(Op(".setattr", 0, (Ref(SPARE + 1), "data", Ref(SPARE + 2))))
    twice()
    both.run(Op(".setattr", 0, (Ref(MATRIX), "has_canonical_format", False)))
    both.require_same(product(row(0, dtype)))  # CuPy adds up what stands twice, which nothing does
    twice()
    assert both.done >= 6
    both.run(Op(".method", 0, (Ref(MATRIX), "setdiag", 0.5)), Op(".method", 0, (Ref(MATRIX), "eliminate_zeros")))
    twice()


def test_what_stands_twice_is_added_up_first() -> None:
    from cupyx.scipy import sparse

    parts = [_on_device(np.array(one)) for one in ([1.0, 2.0, 3.0, 4.0], [0, 0, 5, 1], [0, 3, 4])]
    both = Both(sparse.csr_matrix(tuple(parts), shape=(2, COLUMNS)), np.dtype("<f8"))
    for number in range(3):
        both.require_same(product(row(number, np.dtype("<f8"))))
    assert both.done == 3


def test_a_matrix_is_looked_at_behind_what_writes_it() -> None:
    matrix, dtype = made("csr_matrix", "<f8")
    both = Both(matrix, dtype)
    parts = [np.array([1.0, 2.0]), np.array([0, 1], "i"), np.array([0, 2], "i")]
    for one in (both.on, both.plain):
        for number, part in enumerate(parts):
            one.stream.heap.put(SPARE + number, one.device.upload(part))
    taken = Tuple((Ref(SPARE), Ref(SPARE + 1), Ref(SPARE + 2)))
    both.run(Op("cupyx.scipy.sparse.csr_matrix", SPARE + 3, (taken, Tuple((1, COLUMNS)))))
    both.run(
        Op("cupy.subtract", 0, (1, Ref(SPARE + 1), Ref(SPARE + 1))),  # now the second column stands first
        Op(".method", SPARE + 4, (Ref(SPARE + 3), "__matmul__", row(0, dtype))),
    )
    asked = Op(".getattr", 0, (Ref(SPARE + 3), "has_sorted_indices"), want=Want.DESCRIPTION)
    told = [one.run(asked)[0] for one in (both.on, both.plain)]
    assert told[0] == told[1]
    assert both.on.contents(Ref(SPARE + 4)).tobytes() == both.plain.contents(Ref(SPARE + 4)).tobytes()


def test_what_cupy_does_otherwise_goes_its_way() -> None:
    matrix, dtype = made("csr_matrix", "<f8")
    both = Both(matrix, dtype)
    both.require_same(product(row(0, dtype)))
    both.require_same(product(View(VECTORS, 0, (COLUMNS,), (16,), "<f8", "")))
    both.require_same(product(row(0, dtype, COLUMNS - 1)))  # does not fit
    both.run(Op("cupy.ndarray.astype", SPARE, (row(0, dtype), "<f4")))
    both.require_same(product(Ref(SPARE)))
    both.run(Op("cupy.ndarray.reshape", SPARE + 1, (row(0, dtype), COLUMNS, 1)))
    both.require_same(product(Ref(SPARE + 1)))
    assert both.done == 1


def test_a_matrix_without_elements_goes_cupys_way() -> None:
    from cupyx.scipy import sparse

    both = Both(sparse.csr_matrix((5, COLUMNS), dtype="d"), np.dtype("<f8"))
    both.require_same(product(row(0, np.dtype("<f8"))))
    assert both.done == 0


def test_a_dropped_matrix_keeps_no_memory() -> None:
    import cupy

    matrix, dtype = made("csr_matrix", "<f8")
    both = Both(matrix, dtype)
    del matrix
    both.require_same(product(row(0, dtype)))
    before = cupy.get_default_memory_pool().used_bytes()
    both.run(Op(".nothing", 0, (), (MATRIX,)))
    assert cupy.get_default_memory_pool().used_bytes() < before
