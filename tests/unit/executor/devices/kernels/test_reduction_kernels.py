"""ReductionKernel: CuPy's user guide, axes, layouts, rounding, raw parameters, errors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_backend.devices.cpu.kernels import ReductionKernel
from gpu_backend.devices.cpu.kernels.reduction import block_shape

SUM = ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", "my_sum")


def test_the_guides_l2_norm() -> None:
    kernel = ReductionKernel("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "l2norm")
    x = np.arange(10, dtype=np.float32).reshape(2, 5)
    np.testing.assert_allclose(kernel(x, axis=1), [5.477226, 15.9687195], rtol=1e-7)
    np.testing.assert_allclose(kernel(x), np.linalg.norm(x), rtol=1e-6)


@pytest.mark.parametrize("axis", [None, 0, -1, 1, (0, 2), (2, 1, 0), [1, 2]])
def test_axes(axis: object) -> None:
    x = np.random.default_rng(0).integers(-9, 9, (3, 4, 5))
    wanted = tuple(axis) if isinstance(axis, list) else axis
    for array in (x, x[::-1, ::2], x.transpose(2, 0, 1)):
        for keepdims in (False, True):
            expected = array.sum(axis=wanted, keepdims=keepdims)
            np.testing.assert_array_equal(SUM(array, axis=axis, keepdims=keepdims), expected)


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_sums_of_any_shape(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.sampled_from([1, 2, 3, 7, 33, 600]), min_size=1, max_size=2)))
    axis = data.draw(st.sampled_from([None, 0, len(shape) - 1]))
    x = np.random.default_rng(data.draw(st.integers(0, 99))).integers(-99, 99, shape)
    np.testing.assert_array_equal(SUM(x, axis=axis), x.sum(axis=axis))


@pytest.mark.parametrize("n", [511, 512, 513, 100_000])
def test_rounding_errors_stay_small(n: int) -> None:
    x = np.random.default_rng(1).random(n).astype(np.float32)
    exact = x.sum(dtype=np.float64)
    assert abs(float(SUM(x)) - exact) <= 1e-6 * exact
    wide = np.ascontiguousarray(np.broadcast_to(x[: n // 64 * 64].reshape(-1, 1), (n // 64 * 64, 40)))
    np.testing.assert_allclose(SUM(wide, axis=0), wide[:, 0].sum(dtype=np.float64), rtol=1e-6)


@pytest.mark.parametrize(
    ("length", "outputs", "contiguous", "lanes", "stride"),
    [(1000, 1, 1, 512, 1), (1000, 1000, 1000, 16, 32), (5, 1000, 1, 8, 64), (1, 7, 1, 1, 512), (300, 2, 1, 512, 1)],
)
def test_partial_results_are_as_many_as_in_cupy(
    length: int, outputs: int, contiguous: int, lanes: int, stride: int
) -> None:
    assert block_shape(length, outputs, contiguous) == (lanes, stride)


def test_two_inputs_scalars_and_broadcasting() -> None:
    kernel = ReductionKernel("T x, T y, T scale", "T z", "x * y * scale", "a + b", "z = a", "0", "weighted_dot")
    x, y = np.arange(12.0).reshape(3, 4), np.arange(4.0)
    np.testing.assert_array_equal(kernel(x, y, 2, axis=1), (x * y * 2).sum(1))
    np.testing.assert_array_equal(kernel(x, y, 2), (x * y * 2).sum())


def test_several_outputs_and_a_reduce_type_of_ones_own() -> None:
    kernel = ReductionKernel(
        "T x", "T least, T most, int64 where", "Range(x, _J)", "join(a, b)",
        "(least = a.low, most = a.high, where = a.at)", "Range()", "extremes", reduce_type="Range",
        preamble=r"""
        struct Range {
            double low, high; long long at;
            __device__ Range() : low(1e300), high(-1e300), at(-1) {}
            __device__ Range(double x, long long i) : low(x), high(x), at(i) {}
        };
        __device__ Range join(const Range& a, const Range& b) {
            Range r = a.high >= b.high ? a : b;
            r.low = min(a.low, b.low);
            return r;
        }""",
    )  # fmt: skip
    x = np.random.default_rng(2).permutation(np.arange(700.0)).reshape(7, 100)
    least, most, where = np.empty(7), np.empty(7), np.empty(7, np.int64)
    assert kernel(x, least, most, where, axis=1) is least
    np.testing.assert_array_equal(least, x.min(1))
    np.testing.assert_array_equal(most, x.max(1))
    np.testing.assert_array_equal(where, x.argmax(1))


def test_raw_parameters_need_reduced_axes_first() -> None:
    kernel = ReductionKernel("T x, raw T w", "T z", "x * w[_J] + 0 * w.size()", "a + b", "z = a", "0", "raw_weights")
    x, w = np.arange(12.0).reshape(3, 4), np.array([1.0, 10.0, 100.0])
    np.testing.assert_array_equal(kernel(x, w, axis=0), w @ x)
    with pytest.raises(NotImplementedError, match="Illegal conditions"):
        kernel(x, w, axis=1)


def test_indices_in_the_expressions() -> None:
    kernel = ReductionKernel(
        "T x", "int64 y", "_i * 1000 + _J", "max(a, b)", "y = a + 0 * _out_ind.size()", "0", "indices",
        reduce_type="long long",
    )  # fmt: skip
    np.testing.assert_array_equal(kernel(np.zeros((5, 3)), axis=0), [4, 1004, 2004])


def test_given_outputs() -> None:
    x = np.arange(12.0).reshape(3, 4)
    out = np.empty(3)
    assert SUM(x, axis=1, out=out) is out
    np.testing.assert_array_equal(out, x.sum(1))
    strided = np.zeros((3, 2))
    SUM(x, strided[:, 1], axis=1)
    np.testing.assert_array_equal(strided, np.stack([np.zeros(3), x.sum(1)], 1))
    with pytest.raises(ValueError, match="both"):
        SUM(x, out, axis=1, out=out)
    with pytest.raises(ValueError, match="Out shape is mismatched"):
        SUM(x, axis=0, out=out)


def test_empty_arrays() -> None:
    assert SUM(np.zeros((0, 3)), axis=0).tolist() == [0, 0, 0]
    assert SUM(np.zeros((0, 3)), axis=1).shape == (0,)
    most = ReductionKernel("T x", "T y", "x", "max(a, b)", "y = a", None, "my_max")
    assert most(np.array([3.0, 5.0])) == 5
    with pytest.raises(ValueError, match="my_max which has no identity"):
        most(np.zeros((0, 3)), axis=0)


def test_arguments_that_do_not_fit() -> None:
    x = np.ones((2, 2))
    with pytest.raises(np.exceptions.AxisError):
        SUM(x, axis=2)
    with pytest.raises(ValueError, match="repeated axis"):
        SUM(x, axis=(0, 0))
    with pytest.raises(TypeError, match="Wrong number of arguments"):
        SUM(x, x, x)
    with pytest.raises(TypeError, match="Wrong arguments"):
        SUM(x, foo=1)
    with pytest.raises(ValueError, match="Invalid kernel name"):
        ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", name="1")


def test_half_complex_and_options() -> None:
    assert SUM(np.full(10, 0.5, np.float16)) == 5
    assert SUM(np.full(600, 1 + 2j, np.complex64)) == 600 + 1200j
    kernel = ReductionKernel("T x", "T y", "x * K", "a + b", "y = a", "0", "options", options=("-DK=3",))
    assert kernel(np.arange(4)) == 18
    assert len(kernel.cached_codes) == 1
    assert kernel.reduce_type == "T"
