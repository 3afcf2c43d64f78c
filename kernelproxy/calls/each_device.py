"""What a process has once, and the executor of each of its devices for itself: said to each, and made again by each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from kernelproxy.calls.brought import on_device
from kernelproxy.calls.remote_object import RemoteObject
from kernelproxy.calls.subclassing import cupys_class
from kernelproxy.client import Client, current

__all__ = ["OfEachDevice", "on_each_device"]

Result = TypeVar("Result")


def on_each_device(act: Callable[[Client], Result]) -> Result:
    """Have ``act`` done by the client of each device, which is current then; return what the present one's gave.

    Where one fails the others are gone through all the same; then the first failure is raised.
    """
    here = current()
    done = [_tried(here, act)]  # first: where devices come from is known once a session is there
    done += [_tried(one, act) for one in here.members if one is not here]
    for _, error in done:
        if error is not None:
            raise error
    return done[0][0]  # type: ignore[return-value]


def _tried(client: Client, act: Callable[[Client], Result]) -> tuple[Result | None, Exception | None]:
    try:
        with on_device(client, client.number if client.members else client.streams.device):
            return act(client), None
    except Exception as error:  # whatever it is, the other devices are to be told
        return None, error


class OfEachDevice(RemoteObject):
    """What is made of its definition again by the executor of each device on which it is used."""

    def _here(self) -> Any:
        """Return what the current device's executor has of it: this, unless devices have executors of their own."""
        client = self._client
        if client is None or not client.members or (here := client.members[client.streams.device]) is client:
            return self
        ticket = here.session.pipeline.connection.ticket
        executor = here, ticket.session, ticket.epoch
        copies: dict[int, Any] = self.__dict__.setdefault("_copies", {})
        known = copies.get(here.number)
        if known is None or known[0] != executor:
            known = copies[here.number] = executor, self._made_again()
        return known[1]

    def _made_again(self) -> Any:
        args, kwargs = self._definition
        return cupys_class(type(self))._make(*args, **kwargs)  # type: ignore[attr-defined]
