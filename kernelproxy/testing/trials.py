"""Decorators that run a test of a `unittest.TestCase` several times, with its set-up and tear-down."""

from __future__ import annotations

import functools
import os
import unittest
from typing import Any

from kernelproxy.testing.pytest_part import marked
from kernelproxy.testing.signatures import Decorator, Test


def repeat_with_success_at_least(times: int, min_success: int) -> Decorator:
    """Run a test up to ``times`` times; it passes if ``min_success`` of them do.

    Raises
    ------
    AssertionError
        If that is more than there are.
    """
    if times < min_success:
        raise AssertionError(f"{min_success} of {times} runs cannot pass")

    def decorator(test: Test) -> Any:
        @functools.wraps(test)
        def trials(instance: unittest.TestCase, *args: Any, **kw: Any) -> None:
            texts: list[str] = []
            passed = 0
            while passed < min_success:
                text = _run(instance, test, args, kw)
                passed += not text
                texts += [text] if text else []
                if len(texts) > times - min_success:
                    instance.fail(f"\nFail: {len(texts)}, Success: {passed}\n\nThe first error message:\n{texts[0]}")

        return marked("thread_unsafe", trials, reason="repeat is not thread-safe")

    return decorator


def repeat(times: int, intensive_times: int | None = None) -> Decorator:
    """Run a test ``times`` times, all of which must pass.

    ``intensive_times`` is used instead, unless ``CUPY_TEST_CASUAL`` is 1 in the environment.
    """
    casual = bool(int(os.environ.get("CUPY_TEST_CASUAL", "0")))
    runs = times if intensive_times is None or casual else intensive_times
    return repeat_with_success_at_least(runs, runs)


def retry(times: int) -> Decorator:
    """Run a test up to ``times`` times, until it passes."""
    return repeat_with_success_at_least(times, 1)


def _run(instance: unittest.TestCase, test: Test, args: tuple[Any, ...], kw: dict[str, Any]) -> str:
    """Run the test in an instance of its own; return the text of its failure, empty if it passed.

    Raises
    ------
    unittest.SkipTest
        If it does not apply: then the other runs do not either.
    """
    fresh = type(instance)(instance._testMethodName)
    result = unittest.TestResult()
    unittest.FunctionTestCase(lambda: test(fresh, *args, **kw), fresh.setUp, fresh.tearDown).run(result)
    if result.skipped:
        instance.skipTest(result.skipped[0][1])
    return "\n".join(text for _, text in result.failures + result.errors)
