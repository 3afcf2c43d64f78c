"""Decorators that give some arguments themselves, and hide them from what calls the test."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

#: A test, or what runs one several times.
Test = Callable[..., Any]
Decorator = Callable[[Test], Test]


def wraps_without(test: Test, *names: str) -> Decorator:
    """Return a decorator that makes a function look like ``test`` with the arguments ``names`` given already.

    Whoever reads the signature, as pytest does to find fixtures, sees a default for them.

    The decorator raises ValueError if ``test`` does not take them.
    """

    def decorator(runner: Test) -> Test:
        wrapped = functools.wraps(test)(runner)
        given = functools.partial(test, **dict.fromkeys(names))
        try:
            wrapped.__signature__ = inspect.signature(given)  # type: ignore[attr-defined]
        except ValueError as error:
            raise ValueError(
                f"{test.__qualname__}{inspect.signature(test)} does not take the arguments that its decorator gives: "
                f"{', '.join(names)}."
            ) from error
        return wrapped

    return decorator


_wraps_partial = wraps_without


def _wraps_partial_xp(wrapped: Test, name: str, sp_name: str | None = None, scipy_name: str | None = None) -> Decorator:
    return wraps_without(wrapped, *filter(None, (name, sp_name, scipy_name)))
