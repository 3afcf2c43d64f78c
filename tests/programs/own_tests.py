"""A user's own tests, made of `cupy.testing`: each kind of comparison passes where it must and fails where it must."""

from __future__ import annotations

import random
import unittest
import warnings

import cupy as cp
import cupyx.scipy.sparse
import numpy as np
import scipy.sparse
from cupy import testing
from cupy.testing import _condition
from expecting import refused

# what the two sides return, and what is said if they differ ----------------------------------------------------------


def returning(compared, ours, numpys):
    """Return a test that gives `ours` with CuPy and `numpys` with NumPy."""
    return compared(lambda xp: ours() if xp is cp else numpys())


def agree(compared, ours, numpys):
    returning(compared, ours, numpys)()


def differ(compared, ours, numpys, *texts):
    for text in texts or [""]:
        refused(AssertionError, returning(compared, ours, numpys), text)


one, other = (lambda: cp.ones(3)), (lambda: np.full(3, 1.25))
close = testing.numpy_cupy_allclose
agree(close(rtol=0.3), one, other)
differ(close(), one, other, "Mismatched elements: 3 / 3", "ACTUAL: array([1., 1., 1.])", "DESIRED: array([1.25")
agree(close(atol={"default": 0, cp.float64: 0.3}), one, other)
differ(close(atol={"default": 0.3, cp.float64: 0}), one, other)
refused(TypeError, returning(close(rtol={cp.float32: 1}), one, other), "Can not find tolerance for")
refused(TypeError, lambda: close(rtol={"float32": 1}), "Keys of the tolerance dictionary")
refused(TypeError, lambda: close(rtol={"default": 1}, type_check=False), "must be supplied as float")
agree(testing.numpy_cupy_array_almost_equal(decimal=0), one, other)
differ(testing.numpy_cupy_array_almost_equal(decimal=1), one, other, "decimal")
next_to_it = lambda: np.nextafter(np.ones(3), 2)  # noqa: E731
agree(testing.numpy_cupy_array_almost_equal_nulp(1), one, next_to_it)
differ(testing.numpy_cupy_array_almost_equal_nulp(1), one, other, "equal to 1 ULP")
agree(testing.numpy_cupy_array_max_ulp(1), one, next_to_it)
differ(testing.numpy_cupy_array_max_ulp(1), one, other, "ULP")
agree(testing.numpy_cupy_array_less(), one, other)
differ(testing.numpy_cupy_array_less(), other, one, "type of return value")
differ(testing.numpy_cupy_array_less(), one, lambda: np.ones(3), "x < y")
same = testing.numpy_cupy_array_equal
agree(same(), one, lambda: np.ones(3))
differ(same(), one, other, "Arrays are not equal")
agree(same(), lambda: [cp.ones(2), cp.zeros(1)], lambda: [np.ones(2), np.zeros(1)])
differ(same(), lambda: [cp.ones(2), cp.zeros(1)], lambda: [np.ones(2), np.ones(1)])
differ(same(), lambda: [cp.ones(2)], lambda: [np.ones(2), np.ones(1)])
differ(same(), one, lambda: None)
differ(same(), lambda: cp.ones(3, "f"), lambda: np.ones(3), "different dtypes", "cupy: float32\nnumpy: float64")
agree(same(type_check=False), lambda: cp.ones(3, "f"), lambda: np.ones(3))
differ(same(), lambda: cp.ones((1, 3)), lambda: np.ones(3))
agree(same(), lambda: cp.poly1d([1, 2]), lambda: np.poly1d([1, 2]))
differ(same(), lambda: cp.poly1d([1, 2]), lambda: np.poly1d([1, 3]))
agree(same(), lambda: 2, lambda: 2)
differ(same(), lambda: 2, lambda: 3)
rows, columns = (lambda: cp.ones((2, 3), order="C")), (lambda: np.ones((2, 3), order="F"))
differ(close(), rows, columns, "The state of f_contiguous flag is false. (cupy_result:False numpy_result:True)")
agree(close(contiguous_check=False), rows, columns)
differ(same(strides_check=True), rows, columns, "Strides are not equal")
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    agree(testing.numpy_cupy_array_list_equal(), lambda: [one()], lambda: [np.ones(3)])
    differ(testing.numpy_cupy_array_list_equal(), lambda: [one()], lambda: [other()])
    raises = testing.numpy_cupy_raises()
assert {warning.category for warning in caught} == {DeprecationWarning}
equal = testing.numpy_cupy_equal()
agree(equal, lambda: (1, "a"), lambda: (1, "a"))
differ(equal, lambda: (1, "a"), lambda: (1, "b"), "Results are not equal:\ncupy: (1, 'a')\nnumpy: (1, 'b')")

# errors on one side or on both ---------------------------------------------------------------------------------------


def raising(kind):
    def call():
        raise kind("of ours")

    return call


broken, wrong = raising(ValueError), raising(TypeError)
agree(raises, broken, broken)
differ(raises, one, one, "Both cupy and numpy are expected to raise errors, but not")
differ(raises, broken, one, "Only cupy raises error", "ValueError: of ours")
differ(raises, one, broken, "Only numpy raises error")
differ(raises, broken, wrong, "Different types of errors occurred", "ValueError: of ours", "TypeError: of ours")
differ(close(), broken, broken, "Both cupy and numpy raise exceptions")
agree(close(accept_error=True), broken, broken)
agree(close(accept_error=ValueError), broken, broken)
differ(close(accept_error=TypeError), broken, broken)
differ(equal, broken, broken, "Both cupy and numpy raise exceptions")
refused(ValueError, lambda: close()(lambda: one()))
refused(TypeError, lambda: close()(lambda xp: one())(axis=1), "unexpected keyword argument")

# other modules, signs ------------------------------------------------------------------------------------------------


@close(sp_name="sp", scipy_name="scp")
def sparse_sums(xp, sp, scp):
    assert sp is (cupyx.scipy.sparse if xp is cp else scipy.sparse)
    assert scp is (cupyx.scipy if xp is cp else scipy)
    return testing.shaped_sparse_random((4, 5), sp, density=0.5, format="csr")


sparse_sums()
formats = {cp: "csr", np: "csc"}
matrix = lambda xp, sp: testing.shaped_sparse_random((4, 5), sp, format=formats[xp])  # noqa: E731
refused(AssertionError, close(sp_name="sp")(matrix))
close(sp_name="sp", _check_sparse_format=False)(matrix)()


@same()
def casts(xp, source, target, wrong=0):
    made = xp.array([1, -1, 3]).astype(source).astype(target)
    made[1] -= xp is cp  # as another processor's cast of a negative number may differ
    made[2] += wrong * (xp is cp)
    return made


casts(source=np.int8, target=np.uint8)
refused(AssertionError, lambda: casts(source=np.int8, target=np.uint8, wrong=1), "Mismatched elements: 1 / 2")
refused(AssertionError, lambda: casts(source=np.uint8, target=np.uint8), "Mismatched elements: 1 / 3")

# loops ---------------------------------------------------------------------------------------------------------------
seen = []


@testing.for_all_dtypes(no_complex=True)
@testing.for_CF_orders()
@close(contiguous_check=False)
def everything(xp, dtype, order):
    seen.append((xp, dtype, order))
    return testing.shaped_arange((2, 3), xp, dtype, order) * 2


everything()
assert len(seen) == 2 * 14 * 5


@testing.for_float_dtypes()
@same()
def one_is_wrong(xp, dtype):
    return xp.ones(2, dtype) + (xp is cp and dtype is np.float16)


refused(AssertionError, one_is_wrong)

# arrays and random numbers -------------------------------------------------------------------------------------------
made = testing.generate_matrix((2, 3, 4), dtype=np.complex128, singular_values=[1, 2, 3])
testing.assert_allclose(cp.linalg.svd(made, compute_uv=False), [[3, 2, 1]] * 2, rtol=1e-10)
refused(ValueError, lambda: testing.generate_matrix((3,), singular_values=[1]), "too few axes")
refused(ValueError, lambda: testing.generate_matrix((2, 2), singular_values=[-1]), "negative")
refused(TypeError, lambda: testing.generate_matrix((2, 2)), "not given")
assert testing.shaped_linspace(-3, 3, (4,), dtype=np.uint8).get().tolist() == [0, 1, 2, 3]
refused(AssertionError, testing.generate_seed, "random is not set up")


@testing.fix_random()
def test_numbers(case):
    return drawn.append((random.random(), np.random.rand(), float(cp.random.rand()), testing.generate_seed()))


drawn = []
cp.random.seed(7)
expected = [float(cp.random.rand()) for _ in range(2)]
for _ in range(2):
    test_numbers(None)
assert drawn[0] == drawn[1]
cp.random.seed(101)
assert drawn[0][2] == float(cp.random.rand())
cp.random.seed(7)
assert cp.random.rand() == expected[0]
test_numbers(None)
assert cp.random.rand() == expected[1], "the state from before is back"

# classes -------------------------------------------------------------------------------------------------------------


@testing.parameterize(*testing.product({"n": [1, 2], "f": [lambda n: n + 1]}))
class Sums(unittest.TestCase):
    def test_sum(self):
        assert int(cp.arange(self.f(self.n)).sum()) == self.n * (self.n + 1) // 2

    def test_two(self):
        assert self.n == 2


class Alias(testing.NumpyAliasValuesTestBase):
    func = "can_cast"
    args = (np.int32, np.float64)


@testing.fix_random()
class Chances(unittest.TestCase):
    @_condition.retry(20)
    def test_retried(self):
        assert float(cp.random.rand()) < 0.5

    @_condition.repeat(2)
    def test_repeated(self):
        raise AssertionError("never")


assert Sums is None
classes = [value for name, value in list(globals().items()) if name.startswith("Sums_param_")] + [Alias, Chances]
suite = unittest.TestSuite(map(unittest.defaultTestLoader.loadTestsFromTestCase, classes))
result = unittest.TestResult()
suite.run(result)
assert result.testsRun == 7, result
failed = sorted(test.id().rpartition(".")[2] for test, _ in result.failures)
assert failed == ["test_repeated", "test_two"], (result.failures, result.errors)
assert not result.errors, result.errors
with testing.AssertFunctionIsCalled("cupy.ndarray.get", times_called=1):
    cp.ones(1).get()
with_two_calls = testing.AssertFunctionIsCalled("cupy.ndarray.get", times_called=2)
with_two_calls.__enter__()
refused(AssertionError, lambda: with_two_calls.__exit__(None, None, None))
