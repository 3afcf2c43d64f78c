"""Sparse matrices on the CPU device where CuPy is not SciPy, and ``cupyx.cusparse``; against dense matrices."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest
import scipy.sparse

from gpu_backend.devices import open_device

SPARSE, CUSPARSE = "cupyx.scipy.sparse", "cupyx.cusparse"
BEYOND_INT32 = 2**31 + 1
pytestmark = pytest.mark.filterwarnings("ignore::scipy.sparse.SparseEfficiencyWarning")


@pytest.fixture(scope="module")
def cp() -> Any:
    device = open_device("cpu")
    return lambda name, *args, **kwargs: device.resolve(name)(*args, **kwargs)


@pytest.fixture
def matrix(cp: Any) -> Any:
    return cp(f"{SPARSE}.csr_matrix", np.arange(12.0).reshape(3, 4))


@pytest.mark.parametrize("form", ["csr", "csc"])
@pytest.mark.parametrize("dense", [np.array([[3.0, 4, 0, 11]]), np.array([[3.0], [4], [0]]), np.array([[5.0]])])
@pytest.mark.parametrize("name", ["maximum", "minimum", "eq", "ne", "lt", "le", "gt", "ge"])
def test_one_row_or_column_stands_for_all(cp: Any, matrix: Any, form: str, dense: Any, name: str) -> None:
    a, b = matrix.asformat(form), cp(f"{SPARSE}.{form}_matrix", dense)
    for left, right in ((a, b), (b, a)):
        if name in ("maximum", "minimum"):
            made, expected = getattr(left, name)(right), getattr(np, name)(left.toarray(), right.toarray())
        else:
            compare = getattr(operator, name)
            made, expected = compare(left, right), compare(left.toarray(), right.toarray())
        assert type(made) is type(a)
        assert np.array_equal(made.toarray(), expected)


@pytest.mark.parametrize("shape", [(2, 4), (3, 5), (4, 4)])
@pytest.mark.parametrize("compare", [operator.eq, operator.ne, operator.lt])
def test_other_shapes_are_not_compared(cp: Any, matrix: Any, shape: Any, compare: Any) -> None:
    with pytest.raises(ValueError, match="inconsistent shape"):
        compare(matrix, cp(f"{SPARSE}.csr_matrix", np.ones(shape)))


def test_transposed_diagonals_are_columns(cp: Any) -> None:
    a = cp(f"{SPARSE}.dia_array", (np.arange(1.0, 4)[None], np.array([1])), shape=(3, 4))
    assert (a.T.format, a.transpose().format, a.T.shape) == ("csc", "csc", (4, 3))
    assert np.array_equal(a.T.toarray(), a.toarray().T)


def test_a_sum_leaves_duplicates_as_they_are(cp: Any) -> None:
    places = np.array([1, 1])
    a = cp(f"{SPARSE}.coo_array", (np.array([True, True]), (places,)), shape=(3,))
    assert (int(a.sum()), a.nnz) == (1, 2)


def test_a_matrix_is_not_made_a_row(cp: Any, matrix: Any) -> None:
    for given in (matrix, matrix.tocoo(), matrix.toarray()):
        with pytest.raises(ValueError, match="dimension"):
            cp(f"{SPARSE}.coo_array", given, shape=(12,))


@pytest.mark.parametrize(
    ("shape", "power", "kind"), [((2, 2), -1, ValueError), ((2, 2), 2.0, ValueError), ((2, 3), 2, TypeError)]
)
def test_powers_that_there_are_not(cp: Any, shape: Any, power: Any, kind: type[Exception]) -> None:
    a = cp(f"{SPARSE}.csr_matrix", np.ones(shape))
    with pytest.raises(kind, match=r"exponent|square"):
        cp(f"{SPARSE}.linalg.matrix_power", a, power)
    assert cp(f"{SPARSE}.linalg.matrix_power", cp(f"{SPARSE}.csr_matrix", 2 * np.eye(2)), 3).toarray()[0, 0] == 8


@pytest.mark.parametrize("form", ["csr", "csc"])
def test_arrays_of_places_count_on_from_the_end(cp: Any, matrix: Any, form: str) -> None:
    a, dense = matrix.asformat(form), matrix.toarray()
    assert np.array_equal(a[[3, 4, -1]].toarray(), dense[[0, 1, 2]])
    assert np.array_equal(a[:, np.array([5, 1])].toarray(), dense[:, [1, 1]])
    a[[4], [4]] = 99.0
    assert a[1, 0] == 99
    with pytest.raises(IndexError):
        a[3]


def test_wide_indices_stay_wide(cp: Any) -> None:
    """Those given to a class are made narrow where they fit; those of a matrix are its own choice."""
    parts = (np.ones(3), np.arange(3), np.arange(4))
    a = cp(f"{SPARSE}.csr_matrix", parts, shape=(3, 3))
    assert (a.indices.dtype, cp(f"{SPARSE}.csr_array", parts, shape=(3, 3)).indices.dtype) == (np.int32, np.int64)
    a.indices, a.indptr = a.indices.astype(np.int64), a.indptr.astype(np.int64)
    made = [a.copy(), -a, a * 2, a.T, a.tocsc(), a + a, a @ a, a[1:], a[[0, 1]], a[:, [0, 1]], a.maximum(a), a != a]
    assert {one.indices.dtype for one in made} == {np.dtype(np.int64)}


def test_coordinates_are_taken_as_they_are(cp: Any, matrix: Any) -> None:
    a = matrix.tocoo()
    a.row, a.col = a.row.astype(np.int64), a.col.astype(np.int64)
    assert {a.row.dtype, a.col.dtype, a.copy().row.dtype, a.T.col.dtype} == {np.dtype(np.int64)}
    a.has_canonical_format = True
    assert a.copy().has_canonical_format


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "dia"])
def test_products_of_elements_are_by_rows(matrix: Any, form: str) -> None:
    a, dense = matrix.asformat(form), matrix.toarray()
    for other in (dense, a, a.tocsc(), np.ones((1, 4))):
        made = a.multiply(other)
        assert made.format == "csr"
        expected = dense * (dense if hasattr(other, "nnz") else other)
        assert np.array_equal(made.toarray(), expected)
    assert np.array_equal(a.multiply(2.0).toarray(), 2 * dense)
    assert ((a * 2.0).format, (a / np.array([[1.0, 2, 4, 8]])).format) == (form, "coo")
    assert np.array_equal((a / np.array([[1.0, 2, 4, 8]])).toarray(), dense / [1, 2, 4, 8])


@pytest.mark.parametrize("form", ["csr", "coo"])
def test_arrays_of_one_dimension(cp: Any, form: str) -> None:
    a = cp(f"{SPARSE}.{form}_array", (np.array([1.0, 0, 2]), (np.array([0, 1, 3]),)), shape=(5,))
    assert [int(a.count_nonzero(axis=axis)) for axis in (None, 0, -1, (0,))] == [2] * 4
    with pytest.raises(ValueError, match="out of bounds"):
        a.count_nonzero(axis=1)


def test_elements_and_rows_are_arrays(cp: Any, matrix: Any) -> None:
    elements = list(cp(f"{SPARSE}.csr_array", np.array([1.0, 0, 2])))
    assert {type(one) for one in elements} == {np.ndarray}
    assert np.array(elements).tolist() == [1, 0, 2]
    assert [row.toarray().ravel().tolist() for row in matrix] == matrix.toarray().tolist()


def test_stacks_have_cupys_formats(cp: Any, matrix: Any) -> None:
    def formats(name: str, blocks: Any) -> list[str]:
        return [cp(f"{SPARSE}.{name}", blocks, format=form).format for form in (None, "csr", "csc")]

    rows, columns = matrix, matrix.tocsc()
    assert formats("vstack", [rows, rows]) == ["csr", "csr", "csc"]
    assert formats("hstack", [rows, rows]) == ["coo", "csr", "csc"]
    assert cp(f"{SPARSE}.hstack", iter([columns, columns])).format == "csc"
    assert formats("vstack", [columns, columns]) == ["coo", "csr", "csc"]
    assert formats("bmat", [[rows, None], [None, rows]]) == ["coo", "csr", "csc"]
    assert formats("block_array", [[rows], [rows]]) == ["csr", "csr", "csc"]
    full = cp(f"{SPARSE}.csr_matrix", np.ones((2, 2)))
    assert (cp(f"{SPARSE}.kron", full, full).format, cp(f"{SPARSE}.kron", full, full, "csr").format) == ("coo", "csr")
    assert np.array_equal(cp(f"{SPARSE}.hstack", [rows, columns]).toarray(), np.hstack([rows.toarray()] * 2))


@pytest.mark.parametrize("maker", ["random", "rand"])
def test_random_matrices_follow_the_seed(cp: Any, maker: str) -> None:
    def drawn(seed: int) -> Any:
        cp("cupy.random.seed", seed)
        return cp(f"{SPARSE}.{maker}", 6, 5, 0.4).toarray()

    assert np.array_equal(drawn(3), drawn(3))
    assert not np.array_equal(drawn(3), drawn(4))
    assert np.count_nonzero(drawn(3)) == 12
    with pytest.raises(NotImplementedError, match="int32"):
        cp(f"{SPARSE}.{maker}", 3, 4, dtype="i")
    with pytest.raises(ValueError, match="density"):
        cp(f"{SPARSE}.{maker}", 3, 4, 1.5)


def test_random_arrays_have_any_shape_and_sampler(cp: Any) -> None:
    made = cp(f"{SPARSE}.random_array", (9,), density=0.5, rng=7)
    assert (made.shape, made.nnz, made.format) == ((9,), 4, "coo")
    ones = cp(f"{SPARSE}.random_array", (3, 4), density=0.5, format="csc", data_sampler=np.ones)
    assert (ones.format, ones.data.tolist()) == ("csc", [1.0] * 6)


def test_a_random_matrix_takes_no_room_for_what_it_has_not(cp: Any) -> None:
    made = cp(f"{SPARSE}.random", 1_000_000, 1_000_000, 5e-12, random_state=1)
    assert (made.nnz, made.shape) == (5, (1_000_000, 1_000_000))
    assert made.row.max() < 1_000_000
    assert made.col.max() < 1_000_000


def test_columns_without_end_cost_nothing(cp: Any) -> None:
    """SciPy's product and look-up would take 17 GB each."""
    a = cp(f"{SPARSE}.csr_matrix", np.array([[2.0, 3.0]]))
    parts = (np.array([5.0, 7.0]), np.array([BEYOND_INT32, BEYOND_INT32]), np.array([0, 1, 2]))
    b = cp(f"{SPARSE}.csr_matrix", parts, shape=(2, BEYOND_INT32 + 1))
    product = a @ b
    assert (product.shape, product.indices.tolist(), product.data.tolist()) == (
        (1, BEYOND_INT32 + 1), [BEYOND_INT32], [31.0],
    )  # fmt: skip
    by_columns = b.T @ a.T
    assert (by_columns.format, by_columns.indices.tolist(), by_columns.data.tolist()) == ("csc", [BEYOND_INT32], [31.0])
    assert b[:, [3, BEYOND_INT32, BEYOND_INT32]].toarray().tolist() == [[0, 5, 5], [0, 7, 7]]
    empty = cp(f"{SPARSE}.csr_matrix", (2, BEYOND_INT32 + 1))
    assert (a @ empty).nnz == 0


def test_what_there_is_of_cusparse(cp: Any) -> None:
    there = {name: cp(f"{CUSPARSE}.check_availability", name) for name in ("spmv", "spsm", "csrsm2", "spgeam")}
    assert there == {"spmv": True, "spsm": True, "csrsm2": False, "spgeam": False}
    assert cp(f"{CUSPARSE}.getVersion") >= 12000
    with pytest.raises(ValueError, match="No available version"):
        cp(f"{CUSPARSE}.check_availability", "spell")
    with pytest.raises(RuntimeError, match="spmv does the same"):
        cp(f"{CUSPARSE}.csrmv", None, None)


def test_products_and_sums(cp: Any, matrix: Any) -> None:
    a, dense = matrix, matrix.toarray()
    x, b = np.array([1.0, 2, 0, 1]), np.asfortranarray(np.ones((4, 2)))
    y = np.ones(3)
    assert cp(f"{CUSPARSE}.spmv", a, x, y, alpha=2.0, beta=3.0) is y
    assert np.array_equal(y, 2 * dense @ x + 3)
    assert np.array_equal(cp(f"{CUSPARSE}.spmv", a.tocsc(), np.ones(3), transa=True), dense.T @ np.ones(3))
    assert np.array_equal(cp(f"{CUSPARSE}.spmm", a, b, alpha=2.0), 2 * dense @ b)
    assert np.array_equal(cp(f"{CUSPARSE}.spgemm", a, a.T.tocsr(), alpha=2).toarray(), 2 * dense @ dense.T)
    assert np.array_equal(cp(f"{CUSPARSE}.csrgeam2", a, a, alpha=2, beta=3).toarray(), 5 * dense)
    with pytest.raises(ValueError, match="dimension mismatch"):
        cp(f"{CUSPARSE}.spmv", a, np.ones(3))
    with pytest.raises(ValueError, match="F-contiguous"):
        cp(f"{CUSPARSE}.spmm", a, np.ones((4, 2)))
    with pytest.raises(TypeError, match="unsupported type"):
        cp(f"{CUSPARSE}.spgemm", a.tocsc(), a.T.tocsr())


def test_conversions(cp: Any, matrix: Any) -> None:
    dense = matrix.toarray()
    for form in ("csr", "csc", "coo"):
        made = cp(f"{CUSPARSE}.denseToSparse", dense, form)
        assert (made.format, made.nnz) == (form, 11)
        assert np.array_equal(cp(f"{CUSPARSE}.sparseToDense", made), dense)
    coo = matrix.tocoo()
    coo.coords = tuple(places.astype(np.int64) for places in coo.coords)
    made = cp(f"{CUSPARSE}.coo2csr", coo)
    assert np.array_equal(made.toarray(), dense)
    assert made.indices.dtype == made.indptr.dtype == np.int64
    assert np.array_equal(cp(f"{CUSPARSE}.csr2csr_compress", matrix, 5).toarray(), np.where(dense > 5, dense, 0))


@pytest.mark.parametrize("transa", ["N", "T", "H"])
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("unit", [True, False])
def test_triangles_are_solved(cp: Any, transa: str, lower: bool, unit: bool) -> None:
    """A triangle of a full matrix: the other one does not count."""
    random = np.random.default_rng(3)
    a = random.random((5, 5)) + 1j * random.random((5, 5)) + 3 * np.eye(5)
    b = np.asfortranarray(random.random((5, 2)) + 0j)
    triangle = np.tril(a) if lower else np.triu(a)
    if unit:
        np.fill_diagonal(triangle, 1)
    op = {"N": triangle, "T": triangle.T, "H": triangle.conj().T}[transa]
    x = cp(f"{CUSPARSE}.spsm", cp(f"{SPARSE}.csr_matrix", a), b, 2.0, lower, unit, transa)
    assert np.allclose(op @ x, 2 * b)


def test_incomplete_factors_keep_the_pattern(cp: Any) -> None:
    a = scipy.sparse.random(8, 8, 0.3, random_state=1).toarray() + 4 * np.eye(8)
    made = cp(f"{SPARSE}.csr_matrix", a)
    cp(f"{CUSPARSE}.csrilu02", made)
    found = made.toarray()
    assert np.array_equal(found != 0, a != 0)
    product = (np.tril(found, -1) + np.eye(8)) @ np.triu(found)
    assert np.allclose(product[a != 0], a[a != 0])
    with pytest.raises(ValueError, match=r"a\(1,1\) is missing"):
        cp(f"{CUSPARSE}.csrilu02", cp(f"{SPARSE}.csr_matrix", np.array([[1.0, 2], [3, 0]])))
    with pytest.raises(ValueError, match=r"u\(1,1\) is zero"):
        cp(f"{CUSPARSE}.csrilu02", cp(f"{SPARSE}.csr_matrix", np.ones((2, 2))))
