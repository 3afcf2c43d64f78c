"""What an executor has to say, by listener: one that does not read stands in nobody else's way."""

from __future__ import annotations

from collections.abc import Callable

from gpu_backend.wire.codec import Frame

Message = list[Frame]


class Outbox:
    """Messages not yet sent; those to one peer go out in the order in which they were put in."""

    def __init__(self) -> None:
        self._to: dict[bytes, list[Message]] = {}

    def __bool__(self) -> bool:
        return bool(self._to)

    def put(self, peer: bytes, message: Message) -> None:
        """Have ``message`` sent to ``peer`` after all that waits for it already."""
        waiting = self._to.get(peer)
        if waiting is None:
            self._to[peer] = [message]
        else:
            waiting.append(message)

    def waiting(self, peer: bytes | None) -> int:
        """Return how many messages to ``peer`` wait."""
        waiting = self._to.get(peer) if peer is not None else None
        return len(waiting) if waiting is not None else 0

    def drop(self, peer: bytes | None) -> None:
        """Forget what waits for ``peer``."""
        if peer is not None:
            self._to.pop(peer, None)

    def send(self, try_to_send: Callable[[bytes, Message], bool]) -> None:
        """Hand out messages; a peer for which ``try_to_send`` returns False keeps the rest of its own for later."""
        for peer in list(self._to):
            waiting, sent = self._to[peer], 0
            while sent < len(waiting) and try_to_send(peer, waiting[sent]):
                sent += 1
            if sent == len(waiting):
                del self._to[peer]
            else:
                del waiting[:sent]
