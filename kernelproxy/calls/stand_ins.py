"""What stands in the notebook for an object that stays remote and is no array: a handle, and whose it is.

`remote_object.RemoteObject` puts members and attributes on top; this file stands below the calls, which make them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from gpu_backend.opstream.proof import Made
from gpu_backend.wire import values as wire
from kernelproxy import public_names
from kernelproxy.calls.callbacks import NotebookFunction
from kernelproxy.client import Client
from kernelproxy.stream.dropped import DroppedHandles

S = TypeVar("S", bound="StandIn")


class StandIn:
    """Base of all stand-ins."""

    _handle: int
    #: Whose it is; None for what every executor has under its public name.
    _client: Client | None = None
    _dropped: DroppedHandles
    #: Functions of the notebook that the remote object may call: any use of it may become a conversation.
    _functions: tuple[NotebookFunction, ...] = ()
    #: What rules know of the object: of sparse matrices the shape and the dtype.
    _known: Any = None

    def __del__(self) -> None:
        handle = getattr(self, "_handle", None)
        if handle:
            self._dropped.append((handle, None))

    def _wire_value(self) -> wire.Ref:
        return wire.Ref(self._handle)

    def _take_in(self, attributes: dict[str, wire.Value]) -> None:
        """Take in what the executor told of the object when it gave it; classes that have a use for it do."""


def bind(stand_in: S, client: Client, handle: int) -> S:
    """Make ``stand_in`` stand for the ``handle`` of ``client`` and drop it when it ends."""
    object.__setattr__(stand_in, "_handle", handle)
    object.__setattr__(stand_in, "_client", client)
    object.__setattr__(stand_in, "_dropped", client.dropped)
    return stand_in


def object_from_description(client: Client, info: wire.ObjectInfo) -> Any:
    """Return the stand-in for the object that the executor of ``client`` described."""
    made = bind(object.__new__(public_names.class_of(info.type_name)), client, info.handle)
    if info.attributes:
        made._take_in(info.attributes)
    return made


def fresh(client: Client, made: Made, handle: int) -> Any:
    """Return the stand-in for an object that was proved: nobody has waited for it to be made."""
    stand_in = bind(object.__new__(public_names.class_of(made.qualname)), client, handle)
    if made.known is not None:
        object.__setattr__(stand_in, "_known", made.known)
    return stand_in


def keep_functions(stand_in: StandIn, functions: Sequence[NotebookFunction]) -> None:
    """Note the functions of the notebook that ``stand_in`` was made with."""
    object.__setattr__(stand_in, "_functions", tuple(functions))
