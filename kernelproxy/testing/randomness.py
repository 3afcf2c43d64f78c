"""Random numbers that are the same in every run of a test, of Python, NumPy and CuPy."""

from __future__ import annotations

import functools
import importlib
import os
import random
import types
import unittest
from typing import Any

import numpy as np

from kernelproxy.testing.pytest_part import marked
from kernelproxy.testing.signatures import Decorator, Test

#: Seeds of Python, NumPy and CuPy: CuPy's, for the same numbers.
_SEEDS = (99, 100, 101)


class _Fixed:
    """The three generators, fixed from the first `enter` to the last `leave`."""

    def __init__(self) -> None:
        self._depth = 0
        self._before: tuple[Any, ...] = ()

    @property
    def is_entered(self) -> bool:
        return self._depth > 0

    def enter(self) -> None:
        """Seed them, unless ``CUPY_TEST_RANDOM_NONDETERMINISTIC`` in the environment forbids it."""
        if not self.is_entered:
            remote = importlib.import_module("cupy.random")
            self._before = random.getstate(), np.random.get_state(), remote.get_random_state()
            remote.reset_states()  # a state of its own: the one from before is not seeded with it
            chance = bool(int(os.environ.get("CUPY_TEST_RANDOM_NONDETERMINISTIC", "0")))
            for seed, value in zip((random.seed, np.random.seed, remote.seed), _SEEDS, strict=True):
                seed(None if chance else value)
        self._depth += 1

    def leave(self) -> None:
        """Put back what was there before."""
        self._depth -= 1
        if not self.is_entered:
            python, numpy, remote = self._before
            self._before = ()
            random.setstate(python)
            np.random.set_state(numpy)
            importlib.import_module("cupy.random").set_random_state(remote)


_fixed = _Fixed()


def _setup_random() -> None:
    _fixed.enter()


def _teardown_random() -> None:
    if not _fixed.is_entered:
        raise AssertionError("_setup_random has not been called")
    _fixed.leave()


def generate_seed() -> int:
    """Return a random seed; in a test with `fix_random` only, where it is the same in every run."""
    if not _fixed.is_entered:
        raise AssertionError("random is not set up")
    return int(np.random.randint(0x7FFFFFFF))


def fix_random() -> Any:
    """Fix the random numbers in a test, or in each test of a `unittest.TestCase`.

    Raises
    ------
    ValueError
        If it decorates something else.
    """

    def decorator(decorated: Any) -> Any:
        if isinstance(decorated, types.FunctionType) and decorated.__name__.startswith("test_"):
            return _fixed_test(decorated)
        if isinstance(decorated, type) and issubclass(decorated, unittest.TestCase):
            decorated.setUp = _after(_setup_random)(decorated.setUp)  # type: ignore[method-assign]
            decorated.tearDown = _before(_teardown_random)(decorated.tearDown)  # type: ignore[method-assign]
            return decorated
        raise ValueError(f"Can't apply fix_random to {decorated}")

    return decorator


def _fixed_test(test: Test) -> Any:
    @functools.wraps(test)
    def fixed(*args: Any, **kw: Any) -> None:
        _setup_random()
        try:
            test(*args, **kw)
        finally:
            _teardown_random()

    return marked("thread_unsafe", fixed, reason="fix_random seeds globals.")


def _after(first: Test) -> Decorator:
    def decorator(method: Test) -> Test:
        def both(self: unittest.TestCase) -> None:
            first()
            method(self)

        return both

    return decorator


def _before(last: Test) -> Decorator:
    def decorator(method: Test) -> Test:
        def both(self: unittest.TestCase) -> None:
            try:
                method(self)
            finally:
                last()

        return both

    return decorator
