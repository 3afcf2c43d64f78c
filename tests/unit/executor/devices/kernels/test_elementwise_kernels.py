"""ElementwiseKernel: CuPy's user guide, types, layouts, raw parameters, errors."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_backend.devices.cpu.kernels import CompileException, CUDADriverError, ElementwiseKernel
from gpu_backend.devices.cpu.kernels.loops import joined
from gpu_backend.devices.cpu.memory import LEDGER, OutOfMemoryError
from tests.calls import calls_of

SUM = ElementwiseKernel("T x, T y", "T z", "z = x + 2 * y", "weighted_sum")


def test_the_guides_squared_difference() -> None:
    kernel = ElementwiseKernel("float32 x, float32 y", "float32 z", "z = (x - y) * (x - y)", "squared_diff")
    x, y = np.arange(10, dtype=np.float32).reshape(2, 5), np.arange(5, dtype=np.float32)
    np.testing.assert_array_equal(kernel(x, y), (x - y) ** 2)
    np.testing.assert_array_equal(kernel(x, 5), (x - 5) ** 2)
    z = np.empty((2, 5), np.float32)
    assert kernel(x, y, z) is z
    np.testing.assert_array_equal(z, (x - y) ** 2)


@pytest.mark.parametrize("dtype", list("?bHilQefdFD"))
def test_a_placeholder_takes_every_dtype(dtype: str) -> None:
    kernel = ElementwiseKernel("T x, T y", "T z", "T d = x + y; z = d * y", "generic")
    x, y = np.arange(6).astype(dtype), np.array([1, 0, 1, 1, 0, 1]).astype(dtype)
    z = kernel(x, y)
    assert z.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(z, (x + y) * y)


def test_several_placeholders_and_outputs() -> None:
    kernel = ElementwiseKernel("X x, Y y", "Z z", "z = (x - y) * (x - y)", "super_generic")
    z = np.empty(4, np.float64)
    kernel(np.arange(4, dtype=np.int8), np.arange(4, dtype=np.float32)[::-1], z)
    np.testing.assert_array_equal(z, [9, 1, 1, 9])
    with pytest.raises(KeyError):
        kernel(np.arange(4), np.arange(4))
    both = ElementwiseKernel("T x", "T low, int32 high", "low = x - 1; high = x + 1", "both")
    low, high = both(np.arange(3.0))
    assert (low.dtype, high.dtype) == (np.float64, np.int32)
    np.testing.assert_array_equal(high, [1, 2, 3])


def test_raw_parameters() -> None:
    reverse = ElementwiseKernel("T x, raw T y", "T z", "z = x + y[_ind.size() - i - 1]", "add_reverse")
    x = np.arange(5.0)
    np.testing.assert_array_equal(reverse(x, x[::-1]), 2 * x)
    pick = ElementwiseKernel("raw T x", "T z", "ptrdiff_t at[] = {i % 2, i / 2}; z = x[at]", "pick")
    y = np.arange(6.0).reshape(3, 2).T
    np.testing.assert_array_equal(pick(y, size=6), y.T.ravel())
    told = ElementwiseKernel(
        "raw T x", "raw int64 z", "z[i] = x.size() * 100 + x.shape()[i] * 10 + x.strides()[i]", "told"
    )
    z = np.zeros(2, np.int64)
    told(y, z, size=2)
    np.testing.assert_array_equal(z, [600 + 20 + 8, 600 + 30 + 16])


def test_scalars_take_the_type_of_the_parameter() -> None:
    x = np.arange(3, dtype=np.int16)
    assert SUM(x, 3).dtype == np.int16
    assert SUM(np.float32(2), np.ones(2)).dtype == np.float64
    np.testing.assert_array_equal(SUM(x, np.float64(2.9)), x + 4)
    with pytest.raises(OverflowError):
        SUM(x, 2**40)
    with pytest.raises(TypeError, match="Unsupported type"):
        SUM(x, "3")


@pytest.mark.parametrize("value", [-1, 2**32, 2**63 - 1, -(2**63)])
@pytest.mark.parametrize("dtype", ["int8", "uint64", "float32"])
def test_numpy_scalars(value: int, dtype: str) -> None:
    x = np.arange(4).astype(dtype)
    y = np.array(value).astype(dtype)[()]
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(SUM(x, y), x + y + y)


def test_keywords_of_the_constructor() -> None:
    kernel = ElementwiseKernel(
        "T x", "T y", "y = twice(x) + start + FACTOR; ++seen;", "keywords",
        preamble="__device__ float twice(float x) { return 2 * x; }", options=("-DFACTOR=100",),
        loop_prep="float start = 10; int seen = 0;", after_loop="if (seen == 0) __trap();", return_tuple=True,
    )  # fmt: skip
    (y,) = kernel(np.arange(3, dtype=np.float32))
    np.testing.assert_array_equal(y, [110, 112, 114])
    silent = ElementwiseKernel("T x", "T y", "y = x", "silent", no_return=True)
    assert silent(y, y) is None


def test_return_and_break_leave_one_element_only() -> None:
    out = np.zeros(10)
    ElementwiseKernel("T x", "T y", "if (x < 3) return; y = x; if (x > 6) break; y += 100;", "leaves")(
        np.arange(10.0), out
    )
    np.testing.assert_array_equal(out, [0, 0, 0, 103, 104, 105, 106, 7, 8, 9])


def test_code_that_speaks_of_threads_gets_threads() -> None:
    kernel = ElementwiseKernel(
        "T x", "T y, int32 where",
        "__shared__ T s[64]; s[threadIdx.x] = x; __syncthreads(); y = s[threadIdx.x ^ 1]; where = blockIdx.x",
        "threads",
    )  # fmt: skip
    x = np.arange(128.0).reshape(8, 16)
    y, where = kernel(x.T, block_size=64)
    np.testing.assert_array_equal(y, x.T.ravel()[np.arange(128) ^ 1].reshape(16, 8))
    np.testing.assert_array_equal(where.ravel(), np.arange(128) // 64)


def test_structured_elements_by_field_number() -> None:
    pair = np.dtype([("a", np.int32), ("b", np.float64)], align=True)
    x = np.array([(1, 0.5), (2, 1.5)], pair)
    kernel = ElementwiseKernel("T x", "T y, float64 s", "y = x; y.at<0>() *= 10; s = x.at<0>() + x.at<1>()", "fields")
    y, s = kernel(x)
    assert y["a"].tolist() == [10, 20]
    assert s.tolist() == [1.5, 3.5]


@pytest.mark.parametrize(
    ("view", "axes", "kept"),
    [
        (np.arange(24).reshape(2, 3, 4), (24,), (2, 3, 4)),
        (np.arange(24).reshape(6, 4)[:, :2], (6, 2), (6, 2)),
        (np.arange(24).reshape(6, 4)[::2, :1], (3, 1), (3, 1)),  # two axes are not looked at closer
        (np.arange(48).reshape(4, 3, 4)[::2], (2, 12), (2, 3, 4)),
        (np.arange(24).reshape(2, 3, 4).T, (4, 3, 2), (4, 3, 2)),
        (np.broadcast_to(np.arange(4), (2, 3, 4)), (6, 4), (2, 3, 4)),
    ],
)
def test_axes_are_joined_as_cupy_joins_them(view: np.ndarray, axes: tuple[int, ...], kept: tuple[int, ...]) -> None:
    told = "y = _raw_x.ndim * 100 + _raw_x.shape()[0]"
    for reduce_dims, shape in ((True, axes), (False, kept)):
        kernel = ElementwiseKernel("T x", "int64 y", told, "told", reduce_dims=reduce_dims)
        assert set(kernel(view).ravel()) == {len(shape) * 100 + shape[0]}
        index = ElementwiseKernel("T x", "int64 y", "y = _ind.get()[_ind.ndim - 1]", "index", reduce_dims=reduce_dims)
        np.testing.assert_array_equal(index(view).ravel(), np.indices(shape)[-1].ravel())


def test_indices_of_a_kept_shape() -> None:
    kernel = ElementwiseKernel(
        "T x", "int64 y", "y = _ind.get()[0] * 100 + _ind.get()[1] * 10 + _ind.get()[2]", "indices", reduce_dims=False
    )
    y = kernel(np.zeros((2, 3, 4)))
    i, j, k = np.indices((2, 3, 4))
    np.testing.assert_array_equal(y, i * 100 + j * 10 + k)


def test_size_rules() -> None:
    a = np.ones(2, np.float32)
    raw = ElementwiseKernel("raw float32 x, float32 s", "float32 y", "y = x[0] + s", "raw")
    assert raw(a, 1, size=2).shape == (2,)
    with pytest.raises(ValueError, match=r"^Loop size is undecided\."):
        raw(a, 1)
    with pytest.raises(ValueError, match=r"^Specified 'size' can"):
        raw(a, a, size=2)
    with pytest.raises(ValueError, match="Output array size is Undecided"):
        ElementwiseKernel("float32 x", "raw float32 y", "", "k")(a)
    assert raw(a, 1, size=0).shape == (0,)


def test_arguments_that_do_not_fit() -> None:
    x = np.arange(3.0)
    with pytest.raises(ValueError, match="could not be broadcast"):
        SUM(x, np.arange(4.0))
    assert SUM(x, x, np.empty((2, 3))).tolist() == [[0, 3, 6]] * 2
    with pytest.raises(ValueError, match="Out shape is mismatched"):
        SUM(np.zeros((3, 4)), 1, np.zeros(4))
    with pytest.raises(TypeError, match="Type is mismatched"):
        SUM(x, np.arange(3))
    with pytest.raises(TypeError, match="Output arguments type must be"):
        SUM(x, x, 3.0)
    with pytest.raises(TypeError, match="Wrong number of arguments"):
        SUM(x)
    with pytest.raises(TypeError, match="Wrong arguments"):
        SUM(x, x, foo=1)
    with pytest.raises(ValueError, match="block_size"):
        SUM(x, x, block_size=0)


@pytest.mark.parametrize(
    ("args", "error", "text"),
    [
        (("T x", "T y", "", "ker nel"), ValueError, "Invalid kernel name"),
        (("T i", "T y", ""), ValueError, "Can not use 'i'"),
        (("Tx", "T y", ""), Exception, "Syntax error: Tx"),
        (("foo T x", "T y", ""), Exception, 'Unknown keyword "foo"'),
        (("foo x", "T y", ""), TypeError, "not understood"),
    ],
)
def test_definitions_that_are_refused(args: tuple[str, ...], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        ElementwiseKernel(*args)  # type: ignore[misc]


def test_compile_errors_name_the_kernel() -> None:
    with pytest.raises(CompileException, match=r"my_kernel.cu:\d+"):
        ElementwiseKernel("T x", "T y", "y = nonsense(x)", "my_kernel")(np.ones(2))


def test_attributes_and_cached_codes() -> None:
    kernel = ElementwiseKernel("T x, raw int32 y", "T z", "z = x", "attributes")
    assert (kernel.nin, kernel.nout, kernel.nargs, kernel.name, kernel.__name__) == (
        2,
        1,
        3,
        "attributes",
        "attributes",
    )
    assert [p.name for p in kernel.params] == ["x", "y", "z", "_ind"]
    assert kernel.in_params[1].raw
    assert kernel.in_params[1].is_const
    assert not kernel.out_params[0].is_const
    with pytest.warns(UserWarning, match="No codes are cached"):
        assert kernel.cached_codes == {}
    y = np.zeros(1, np.int32)
    kernel(np.ones(3), y)
    kernel(np.ones(4), y)
    assert len(kernel.cached_codes) == 1
    assert "z = x" in kernel.cached_code
    kernel(np.ones(3, np.float32), y)
    assert len(kernel.cached_codes) == 2


def test_outputs_are_booked_and_refused_beyond_the_limit() -> None:
    gc.collect()  # arrays of other tests, which errors hold, are given back now and not while bytes are compared
    x = np.zeros(1 << 20)
    before = LEDGER.used_bytes
    kept = SUM(x, 1)
    assert LEDGER.used_bytes >= before + kept.nbytes
    LEDGER.free_all_blocks()
    LEDGER.set_quota(LEDGER.used_bytes + (1 << 20))
    try:
        with pytest.raises(OutOfMemoryError):
            SUM(x, 1)
    finally:
        LEDGER.set_quota(0)


def test_an_integer_division_by_zero_is_an_error_and_not_the_end() -> None:
    kernel = ElementwiseKernel("T x, T y", "T z", "z = x / y", "quotient")
    x = np.arange(4)
    for _ in range(2):
        with pytest.raises(CUDADriverError, match="divided an integer by zero"):
            kernel(x, x)
    assert kernel(x, 2).tolist() == [0, 0, 1, 1]


def test_integers_of_fixed_size_are_those_of_cuda() -> None:
    preamble = "#include <cstdlib>\n#include <cstdint>\n#include <limits>\ntypedef long long int64_t;"
    body = "int64_t most = max((int64_t)x, 2LL); y = std::abs((int)most) + (std::uint8_t)259 + INT64_C(1);"
    kernel = ElementwiseKernel("int64 x", "int64 y", body, preamble=preamble)
    assert kernel(np.arange(4)).tolist() == [6, 6, 6, 7]
    assert ElementwiseKernel("int64 x", "int64 y", "uint32_t low = x; y = low;")(np.array([-1])).tolist() == [2**32 - 1]


def test_a_warm_call_costs_little() -> None:
    x = np.ones(4)
    SUM(x, x)
    # 35 µs on an idle core of a 2.5 GHz Xeon.
    assert calls_of(lambda: SUM(x, x)) <= 60


@st.composite
def views(draw: st.DrawFn, shape: tuple[int, ...]) -> np.ndarray:
    """An array of ``shape``, or one that broadcasts to it, in any order, direction and step of memory."""
    extents = [n if draw(st.booleans()) or n == 1 else 1 for n in shape] if draw(st.booleans()) else list(shape)
    steps = [draw(st.sampled_from([1, 1, 2, -1])) for _ in extents]
    order = draw(st.permutations(range(len(extents))))
    if not shape:
        return np.array(draw(st.integers(-9, 9)), np.float64)
    whole = np.random.default_rng(draw(st.integers(0, 99))).integers(-9, 9, [n * 2 for n in extents]).astype(np.float64)
    stored = np.ascontiguousarray(whole.transpose(order)).transpose(np.argsort(order))
    return stored[tuple(slice(None, n, 1) if s == 1 else slice(None, 2 * n, 2) if s == 2 else slice(n - 1, None, -1)
                        for n, s in zip(extents, steps, strict=True))]  # fmt: skip


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_any_layouts_give_what_numpy_gives(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 4), max_size=3)))
    x, y = data.draw(views(shape)), data.draw(views(shape))
    np.testing.assert_array_equal(SUM(x, y), x + 2 * y)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_joined_loops_visit_every_element_once_in_order(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 4), max_size=4)))
    arrays = [np.broadcast_to(data.draw(views(shape)), shape) for _ in range(2)]
    any_order = data.draw(st.booleans())
    nest = joined(shape, [a.strides for a in arrays], any_order=any_order)
    visited = [
        [sum(i * s for i, s in zip(index, strides, strict=True)) for index in np.ndindex(*nest.shape)]
        for strides in nest.strides
    ]
    expected = [
        [sum(i * s for i, s in zip(index, a.strides, strict=True)) for index in np.ndindex(*shape)] for a in arrays
    ]
    pairs, wanted = list(zip(*visited, strict=True)), list(zip(*expected, strict=True))
    assert sorted(pairs) == sorted(wanted) if any_order else pairs == wanted
