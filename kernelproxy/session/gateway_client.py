"""Asking the gateway that the client's settings name."""

from __future__ import annotations

from gpu_backend.transport import curve
from gpu_backend.transport.asking import ANSWER_SECONDS, Door, ask, ask_async
from gpu_backend.wire.control import FromGateway, ToGateway
from kernelproxy.settings import ClientSettings


def request(settings: ClientSettings, message: ToGateway, timeout_seconds: float = ANSWER_SECONDS) -> FromGateway:
    """Send ``message`` to the gateway and return its answer. The ``request`` number is set on the way.

    Raises
    ------
    NotAuthorized
        If there is no usable key of ours, if the pool does not know it or it may not do this; or if the pool is not
        the one whose key we hold. Known within a second.
    PoolUnreachable
        If nobody answers within ``timeout_seconds``.
    SessionLost
        If the message is about a session that has ended.
    PoolRefusal
        If the pool says no; the message says why and what to do.
    """
    return ask(_door(settings), message, timeout_seconds)


async def request_async(
    settings: ClientSettings, message: ToGateway, timeout_seconds: float = ANSWER_SECONDS
) -> FromGateway:
    """Like `request`, from an event loop."""
    return await ask_async(_door(settings), message, timeout_seconds)


def _door(settings: ClientSettings) -> Door:
    return Door(settings.gateway, settings.server_key.encode(), curve.load(settings.key_file))
