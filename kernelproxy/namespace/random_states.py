"""The random state in use. As in CuPy, whoever asks for it again gets the same object."""

from __future__ import annotations

from typing import Any

from kernelproxy.calls import dispatch
from kernelproxy.namespace.lasting import Kept

#: What is known to be in use in an executor.
_in_use = Kept()
_STATE = "the state"


def get_random_state() -> Any:
    """Return the random state that functions such as ``cupy.random.rand`` draw from."""
    return _in_use.get(_STATE, lambda: dispatch.ask_object("cupy.random.get_random_state"))


def set_random_state(rs: Any) -> None:
    """Let functions such as ``cupy.random.rand`` draw from ``rs``.

    Raises
    ------
    TypeError
        If it is no ``RandomState``.
    """
    dispatch.ask_object("cupy.random.set_random_state", rs)
    _in_use.of_this_executor()[_STATE] = rs


def reset_states() -> None:
    """Forget the state in use; another one, of another seed, is made when it is needed."""
    _in_use.of_this_executor().clear()
    dispatch.ask_object("cupy.random.reset_states")
