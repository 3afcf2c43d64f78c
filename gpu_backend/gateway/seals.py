"""The pool's own word for what it gave to whom: a seal that only the gateway can make, kept by the node that has it.

An agent's report brings the seal of each executor back. What carries one, the gateway itself has once ordered, be its
records lost or restored from an old copy; what carries none is a node's mere claim. A seal says when its session was
opened: of one that the records have dropped since, it is good for nothing any more.
"""

from __future__ import annotations

import hmac

import msgspec

from gpu_backend.transport.curve import KeyPair
from gpu_backend.wire.control import ExecutorReport, Launch

_PURPOSE = b"gpu-workbench: sessions given to nodes"


class Seals:
    """Makes seals and knows them again, by a key that follows from the gateway's own: records hold none."""

    def __init__(self, keys: KeyPair) -> None:
        self._key = hmac.digest(keys.secret, _PURPOSE, "sha256")

    def sealed(self, node: str, order: Launch, opened_at: float) -> Launch:
        """Return ``order``, of a session opened then (seconds since 1970), with the seal that ``node`` brings back."""
        stamp = opened_at.hex()
        return msgspec.structs.replace(order, seal=f"{stamp}:{self._seal(node, order, stamp)}")

    def opened_at(self, node: str, executor: ExecutorReport) -> float | None:
        """Return when the session was opened (seconds since 1970) that the pool gave to ``node``.

        None if the pool did not give it, in this epoch and for this client.
        """
        stamp, _, seal = executor.seal.partition(":")
        is_good = hmac.compare_digest(seal.encode(), self._seal(node, executor, stamp).encode())
        return float.fromhex(stamp) if is_good else None

    def _seal(self, node: str, given: Launch | ExecutorReport, stamp: str) -> str:
        said = (
            node, given.session, given.epoch, given.ordinal, given.client_key, given.memory_limit_bytes,
            float(given.lease_seconds), stamp, *given.others,
        )  # fmt: skip
        return hmac.digest(self._key, msgspec.msgpack.encode(said), "sha256").hex()
