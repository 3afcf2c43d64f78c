"""`cupy.testing` without a pool. With arrays: `tests/programs/own_tests.py`."""

from __future__ import annotations

import importlib
import inspect
import itertools
import subprocess
import sys
import unittest
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gpu_backend.opstream import surface
from kernelproxy.namespace.names import make
from kernelproxy.namespace.testing_names import NAMES, PRIVATE_NAMES
from kernelproxy.testing import loops, parameters, pytest_part, requirements, trials


def test_every_name_of_the_surface_is_served() -> None:
    described = surface.load()
    public = {f"cupy.testing.{name}" for name in described.below("cupy.testing") if not name.startswith("_")}
    assert public == set(NAMES)


@pytest.mark.parametrize("name", sorted(PRIVATE_NAMES))
def test_every_private_name_is_there(name: str) -> None:
    module, _, attribute = PRIVATE_NAMES[name].partition(":")
    assert hasattr(importlib.import_module(module), attribute)


@pytest.mark.parametrize("name", sorted(NAMES))
def test_the_signatures_are_those_of_cupy(name: str) -> None:
    entry = surface.load()[name]
    if not isinstance(entry, surface.Function):
        return
    there = [parameter.partition("=") for parameter in entry.signature.strip("()").split(", ")]
    here = {parameter.name: parameter for parameter in inspect.signature(make(name)).parameters.values()}
    assert [words[0].lstrip("*") for words in there if words[0] != "*" and words[0]] == list(here)
    for parameter, has_default, default in there:
        if has_default and parameter not in ("xp", "dtype", "names", "accept_error"):
            assert repr(here[parameter].default) == default


# --- loops -----------------------------------------------------------------------------------------------------------


def calls_of(decorator: Callable[..., Any], names: str, **given: Any) -> list[Any]:
    """Return what a test gets for its arguments `names` from `decorator`."""
    seen = []
    test = eval(f"lambda {names}, **others: seen.append(({names}))", {"seen": seen})
    decorator(test)(**given)
    return seen


@pytest.mark.parametrize(
    ("decorator", "characters"),
    [
        (loops.for_all_dtypes(), "dfebhilqBHILQ?FD"),
        (loops.for_all_dtypes(no_float16=True, no_bool=True, no_complex=True), "dfbhilqBHILQ"),
        (loops.for_float_dtypes(), "dfe"),
        (loops.for_float_dtypes(no_float16=True), "df"),
        (loops.for_signed_dtypes(), "bhilq"),
        (loops.for_unsigned_dtypes(), "BHILQ"),
        (loops.for_int_dtypes(), "bhilqBHILQ?"),
        (loops.for_int_dtypes(no_bool=True), "bhilqBHILQ"),
        (loops.for_complex_dtypes(), "FD"),
        (loops.for_dtypes(["f4", np.int8]), "fb"),
    ],
)
def test_a_loop_gives_each_dtype(decorator: Callable[..., Any], characters: str) -> None:
    assert sorted(map(str, calls_of(decorator, "dtype"))) == sorted(str(np.dtype(c).type) for c in characters)


def test_all_combinations_of_dtypes_or_some() -> None:
    types = [np.int8, np.int16, np.float32]
    full = calls_of(loops.for_dtypes_combination(types, ("a", "b"), full=True), "a, b")
    assert sorted(map(str, full)) == sorted(map(str, itertools.product(types, types)))
    some = calls_of(loops.for_dtypes_combination(types, ("a", "b"), full=False), "a, b")
    assert len(set(some)) == len(some) <= 6
    assert {a for a, _ in some} == {b for _, b in some} == set(types)
    assert calls_of(loops.for_dtypes_combination([np.int8], ("a",)), "a") == [np.int8]


@pytest.mark.parametrize(
    ("decorator", "kinds"),
    [
        (loops.for_all_dtypes_combination, "?bcfiu"),
        (loops.for_int_dtypes_combination, "?biu"),
        (loops.for_signed_dtypes_combination, "i"),
        (loops.for_unsigned_dtypes_combination, "u"),
    ],
)
def test_combinations_of_a_kind(decorator: Callable[..., Any], kinds: str) -> None:
    seen = calls_of(decorator(names=("a", "b"), full=True), "a, b")
    assert {np.dtype(dtype).kind for pair in seen for dtype in pair} == set(kinds) - {"?"}
    assert len(seen) == len({a for a, _ in seen}) ** 2


def test_orders_and_the_axes_that_lie_together() -> None:
    assert calls_of(loops.for_CF_orders(), "order") == [None, "C", "F", "c", "f"]
    axes = loops.for_contiguous_axes()
    assert calls_of(axes, "axis", shape=(1, 2, 3), order="C") == [(0, 1, 2), (1, 2), (2,)]
    assert calls_of(axes, "axis", shape=(1, 2, 3), order="f") == [(0,), (0, 1), (0, 1, 2)]
    with pytest.raises(ValueError, match="specify the array order"):
        calls_of(axes, "axis", shape=(1,), order="K")


def test_a_failure_says_for_which_case() -> None:
    @loops.for_dtypes([np.int8, np.int16])
    @loops.for_orders("CF")
    def fails(dtype: type, order: str) -> None:
        assert (dtype, order) != (np.int16, "F")

    with pytest.raises(AssertionError) as raised:
        fails()
    assert raised.value.__notes__ == ["order is F", "dtype is <class 'numpy.int16'>"]


@pytest.mark.parametrize("skip", [unittest.SkipTest, pytest.skip])
def test_a_dtype_that_does_not_apply_is_passed_over(skip: Any, capsys: pytest.CaptureFixture[str]) -> None:
    seen = []

    @loops.for_dtypes([np.int8, np.int16])
    def test(dtype: type) -> None:
        seen.append(dtype)
        raise skip("not here")

    test()
    assert len(seen) == 2
    assert "skipped: dtype = <class 'numpy.int8'> (not here)" in capsys.readouterr().out
    with pytest.raises((unittest.SkipTest, pytest.skip.Exception)):  # of an order that does not apply none says a word
        loops.for_orders("CF", "dtype")(test.__wrapped__)()  # type: ignore[attr-defined]


# --- classes ---------------------------------------------------------------------------------------------------------


@parameters.parameterize(*parameters.product({"n": [1, 2], "text": ["x" * 300]}))
class TestParameterized:
    def test_has_the_attributes(self, request: pytest.FixtureRequest) -> None:
        n: int = self.n  # type: ignore[attr-defined]
        assert request.node.name.startswith(f"test_has_the_attributes[_param_{n - 1}_{{n={n}, text='xxx")
        assert "x...x" in request.node.name
        assert f"'n': {n}" in repr(self)


def test_a_class_is_parameterized_once() -> None:
    with pytest.raises(RuntimeError, match="twice"):
        parameters.parameterize({"n": 1})(TestParameterized)


def test_dicts_are_joined() -> None:
    joined = parameters.product_dict([{"a": 1}, {"a": 2}], [{"b": 3, "c": 4}])
    assert joined == [{"a": 1, "b": 3, "c": 4}, {"a": 2, "b": 3, "c": 4}]


class _Trial(unittest.TestCase):
    """A test whose runs fail as `fails` says; each run has a set-up of its own."""

    __test__ = False
    fails: list[bool]
    runs: list[str]

    def setUp(self) -> None:
        self.runs.append("set up")

    def test(self) -> None:
        self.runs.append("run")
        assert not self.fails[self.runs.count("run") - 1]


@pytest.mark.parametrize(
    ("decorator", "fails", "passes", "runs"),
    [
        (trials.retry(3), [1, 1, 0], True, 3),
        (trials.retry(3), [0], True, 1),
        (trials.retry(3), [1, 1, 1], False, 3),
        (trials.repeat(3), [0, 0, 0], True, 3),
        (trials.repeat(3), [0, 1], False, 2),
        (trials.repeat(2, 4), [0, 0, 0, 0], True, 4),
        (trials.repeat_with_success_at_least(4, 2), [0, 1, 0], True, 3),
        (trials.repeat_with_success_at_least(4, 2), [1, 1, 1], False, 3),
    ],
)
def test_a_test_is_tried_several_times(decorator: Any, fails: list[int], passes: bool, runs: int) -> None:
    tried = type("Tried", (_Trial,), {"fails": fails, "runs": [], "test": decorator(_Trial.test)})
    result = unittest.TestResult()
    tried("test").run(result)
    assert result.wasSuccessful() == passes
    assert tried.runs.count("run") == runs
    assert tried.runs.count("set up") == runs + 1
    if not passes:
        assert f"Fail: {sum(fails)}, Success: {len(fails) - sum(fails)}" in result.failures[0][1]


# --- packages --------------------------------------------------------------------------------------------------------


def test_packages_are_installed_or_not() -> None:
    assert requirements.installed("numpy>=2", "cupy>=14", "cupy-cuda12x")
    assert not requirements.installed("numpy>=2", "cupy>=99")
    assert not requirements.installed("there-is-no-such-package")
    assert requirements.numpy_satisfies(">=2")
    assert not requirements.numpy_satisfies("<2")


@requirements.with_requires("numpy>=99")
def test_is_skipped() -> None:
    raise AssertionError("it was run")


def test_several_gpus_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUPY_TEST_GPU_LIMIT", "1")

    def test() -> None:
        pass

    marks = {mark.name: mark for mark in requirements.multi_gpu(2)(test).pytestmark}  # type: ignore[attr-defined]
    assert marks["skipif"].args == (True,)
    assert "multi_gpu" in marks
    with pytest.raises(AssertionError, match="at least 2 GPUs"):
        requirements.multi_gpu(1)


_WITHOUT_PYTEST = f"""
import importlib, sys, unittest
sys.modules["pytest"] = None
for place in {sorted({target.partition(":")[0] for target in (NAMES | PRIVATE_NAMES).values()})}:
    importlib.import_module(place)
from kernelproxy.testing import parameters, requirements
assert requirements.with_requires()(print) is print
assert requirements._skip_if(True, "because")(lambda: None).__unittest_skip__
@parameters.parameterize({{"n": 1}})
class Case(unittest.TestCase): pass
assert [name for name in dir() if name.startswith("Case_param_0_{{n=1}}")]
try:
    requirements.slow(print)
except RuntimeError as error:
    print(error)
"""


def test_pytest_is_needed_for_what_is_pytests_alone() -> None:
    done = subprocess.run([sys.executable, "-c", _WITHOUT_PYTEST], capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    assert "slow is not available, because pytest is not installed here" in done.stdout


def test_skips_are_told_from_errors() -> None:
    assert set(pytest_part.skips()) == {unittest.SkipTest, pytest.skip.Exception}
