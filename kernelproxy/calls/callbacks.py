"""Functions of the notebook that remote functions call: they stay here, and go by number.

A call that is given such a function becomes a conversation: the executor says what it wants the function called with,
the notebook calls it, its operations are ordinary ops, and the result goes back.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

_numbers = itertools.count(1)


class NotebookFunction:
    """A function that the executor knows by ``number``. Whoever may still call it holds this object."""

    __slots__ = ("function", "number")

    def __init__(self, function: Callable[..., object]) -> None:
        self.function = function
        self.number = next(_numbers)


class Conversation:
    """The functions that the executor may ask for during one call."""

    def __init__(self, functions: list[NotebookFunction]) -> None:
        self.functions = {one.number: one for one in functions}
        #: What the notebook's function raised last; it ends the call here as it would have there.
        self.raised: BaseException | None = None

    def release(self) -> BaseException:
        """Return what the function raised, and forget it: the error's traceback leads here."""
        error, self.raised = self.raised, None
        assert error is not None
        return error

    def called(self, number: int, args: tuple[object, ...], kwargs: dict[str, object]) -> tuple[bool, Any]:
        """Call a function; return whether it returned, and what, or in words what it raised."""
        self.raised = None
        try:
            return True, self.functions[number].function(*args, **kwargs)
        except BaseException as error:  # also an interrupt: the call in the executor has to be ended all the same
            self.raised = error
            return False, f"{type(error).__name__}: {error}"
