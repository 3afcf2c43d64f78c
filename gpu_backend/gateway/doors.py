"""How a gateway's two doors are opened: to its own account by a socket file, and to a network through a forecourt."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

import zmq.asyncio

from gpu_backend.transport.forecourt import Forecourt, listen, places

_OWN, _NETWORK = "ipc://", "tcp://"
_DOORS = 2
#: Of those who come from this account or through the forecourt.
_BACKLOG = 512


async def open_door(socket: zmq.asyncio.Socket, endpoints: Sequence[str], stack: ExitStack) -> None:
    """Have ``socket`` heard at ``endpoints`` until ``stack`` ends: one of its own account, others of networks.

    Raises
    ------
    OSError
        If somebody else listens there, or it is no address of this machine.
    """
    socket.backlog = _BACKLOG
    own = next(one for one in endpoints if one.startswith(_OWN))
    for endpoint in endpoints:
        if not endpoint.startswith(_NETWORK):
            socket.bind(endpoint)
            continue
        court = Forecourt(own.removeprefix(_OWN), places(_DOORS))
        stack.callback(court.close)
        await court.open(listen(endpoint))
