"""The random state in use, one for each device. As in CuPy, whoever asks for it again gets the same object."""

from __future__ import annotations

from typing import Any

from kernelproxy.calls import dispatch
from kernelproxy.calls.each_device import on_each_device
from kernelproxy.calls.remote_object import RemoteObject
from kernelproxy.client import Client, current
from kernelproxy.namespace.lasting import Kept


class _InUse(Kept):
    """The random states that are known to be in use in an executor, by the number of the device."""


def get_random_state() -> Any:
    """Return the random state that functions such as ``cupy.random.rand`` draw from."""
    client = current()
    return client.part(_InUse).get(client.streams.device, lambda: dispatch.ask_object("cupy.random.get_random_state"))


def set_random_state(rs: RemoteObject) -> None:
    """Let functions such as ``cupy.random.rand`` draw from ``rs``.

    Raises
    ------
    TypeError
        If it is no ``RandomState``.
    """
    dispatch.ask_object("cupy.random.set_random_state", rs)
    client = dispatch.whose((rs,))
    client.part(_InUse).of_this_executor()[client.streams.device] = rs


def reset_states() -> None:
    """Forget the state in use; another one, of another seed, is made when it is needed."""

    def reset(client: Client) -> None:
        client.part(_InUse).of_this_executor().clear()
        dispatch.ask_object("cupy.random.reset_states")

    on_each_device(reset)
