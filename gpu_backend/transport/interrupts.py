"""Functions that an interrupt does not end half-way."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

__all__ = ["heard_at_end"]

P = ParamSpec("P")


def heard_at_end(function: Callable[P, None]) -> Callable[P, None]:
    """Have an interrupt that strikes in ``function`` heard once that has come to its end.

    It is begun again until it does: to do a part of it twice must be harmless.
    """

    @wraps(function)
    def done(*args: P.args, **kwargs: P.kwargs) -> None:
        interrupt = None
        while True:
            try:
                function(*args, **kwargs)
                break
            except KeyboardInterrupt as error:
                interrupt = error
        if interrupt is not None:
            try:
                raise interrupt
            finally:
                del interrupt  # its traceback holds this frame

    return done
