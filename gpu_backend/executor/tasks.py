"""Calls that call back: a function of CuPy that takes functions of the notebook.

A notebook's function never comes here. The call runs in a thread of its own, and the op loop waits for it, so at any
time one of the two runs. When CuPy calls the notebook's function, the thread stops, and the op is answered with what
the function was called with; the notebook computes it by ordinary ops and sends the result with ``.resume``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any


class CallbackFailed(Exception):
    """The notebook's function raised. The notebook raises that error itself; this one only ends the call here."""


class _Abandoned(BaseException):
    """Ends the thread of a call that nobody will go on with."""


class _Channel:
    """What the op loop and the thread of one call tell each other."""

    def __init__(self) -> None:
        self.to_call: SimpleQueue[tuple[bool, Any] | None] = SimpleQueue()
        self.from_call: SimpleQueue[tuple[str, Any]] = SimpleQueue()


class _Current(threading.local):
    channel: _Channel | None = None


_current = _Current()


class NotebookFunction:
    """Stands for a function of the notebook."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.__name__ = f"notebook_function_{number}"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Ask the notebook to call the function, and wait for its result.

        Raises
        ------
        CallbackFailed
            If the function raised, or if nobody in the notebook listens.
        """
        channel = _current.channel
        if channel is None:
            raise CallbackFailed("a function of the notebook was called outside of a call that could ask for it")
        channel.from_call.put(("asks", (self.number, args, kwargs)))
        answer = channel.to_call.get()
        if answer is None:
            raise _Abandoned
        returned, value = answer
        if not returned:
            raise CallbackFailed(value)
        return value


class Task:
    """One call that calls back.

    Parameters
    ----------
    enter_thread
        Makes the device usable in a new thread.
    function, args, kwargs
        The call.
    """

    def __init__(
        self,
        enter_thread: Callable[[], object],
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> None:
        self._channel = _Channel()
        work = (self._channel, enter_thread, function, args, kwargs)
        threading.Thread(target=_run, args=work, name="call that calls back", daemon=True).start()
        self._over = False

    def advance(self) -> tuple[Any, ...]:
        """Wait until the call asks for something or ends.

        Returns
        -------
        tuple
            ``(None, result)`` at its end; else this task, the number of the notebook's function, and its arguments.
        """
        said, value = self._channel.from_call.get()
        if said == "asks":
            return (self, *value)
        self._over = True
        if said == "raised":
            raise value
        return None, value

    def resume(self, returned: bool, value: Any) -> tuple[Any, ...]:
        """Go on with what the notebook's function returned, or with the words of what it raised; as `advance`."""
        if self._over:
            raise CallbackFailed("this call is over")
        self._channel.to_call.put((returned, value))
        return self.advance()

    def __del__(self) -> None:
        self._channel.to_call.put(None)


def _run(
    channel: _Channel,
    enter_thread: Callable[[], object],
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> None:
    _current.channel = channel
    try:
        enter_thread()
        said, value = "returned", function(*args, **kwargs)
    except _Abandoned:
        return
    except BaseException as error:  # it is raised again in the op loop, which knows what to do with each kind
        said, value = "raised", error
    channel.from_call.put((said, value))
