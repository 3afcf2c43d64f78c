"""The pool's own word for what it gave to whom: a seal that only the gateway can make, kept by the node that has it.

An agent's report brings the seal of each executor back. What carries one, the gateway itself has once ordered, be its
records lost or restored from an old copy; what carries none is a node's mere claim.
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

    def sealed(self, node: str, order: Launch) -> Launch:
        """Return ``order`` with the seal that ``node`` is to bring back."""
        return msgspec.structs.replace(order, seal=self._seal(node, order))

    def is_good(self, node: str, executor: ExecutorReport) -> bool:
        """Tell whether the pool gave this session to ``node``, in this epoch and for this client."""
        return hmac.compare_digest(executor.seal.encode(), self._seal(node, executor).encode())

    def _seal(self, node: str, given: Launch | ExecutorReport) -> str:
        said = (
            node, given.session, given.epoch, given.ordinal, given.client_key, given.memory_limit_bytes,
            float(given.lease_seconds), *given.others,
        )  # fmt: skip
        return hmac.digest(self._key, msgspec.msgpack.encode(said), "sha256").hex()
