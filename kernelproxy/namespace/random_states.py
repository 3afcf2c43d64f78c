"""The random state in use. As in CuPy, whoever asks for it again gets the same object."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from kernelproxy import dispatch, session

#: What is known to be in use in an executor, by its session's pipeline; with the executor's epoch.
_in_use: WeakKeyDictionary[Any, tuple[int, Any]] = WeakKeyDictionary()


def get_random_state() -> Any:
    """Return the random state that functions such as ``cupy.random.rand`` draw from."""
    epoch, state = _in_use.get(session.pipeline(), (-1, None))
    if epoch != _epoch():
        state = dispatch.ask_object("cupy.random.get_random_state")
        _note(state)
    return state


def set_random_state(rs: Any) -> None:
    """Let functions such as ``cupy.random.rand`` draw from ``rs``.

    Raises
    ------
    TypeError
        If it is no ``RandomState``.
    """
    dispatch.ask_object("cupy.random.set_random_state", rs)
    _note(rs)


def reset_states() -> None:
    """Forget the state in use; another one, of another seed, is made when it is needed."""
    _in_use.pop(session.pipeline(), None)
    dispatch.ask_object("cupy.random.reset_states")


def _note(state: Any) -> None:
    _in_use[session.pipeline()] = _epoch(), state


def _epoch() -> int:
    return session.pipeline().connection.ticket.epoch
