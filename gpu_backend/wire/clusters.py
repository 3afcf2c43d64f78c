"""What a machine of a pool is told of the Ray cluster that keeps its machines together."""

from __future__ import annotations

from gpu_backend.wire.secrecy import HoldsSecret


class Cluster(HoldsSecret, frozen=True, array_like=True, tag="cluster"):
    """The pool's Ray cluster, for its nodes alone: whoever holds ``secret``, its token, can run any code as the pool.

    ``address`` is "host:port" of its head, or empty. ``ray`` and ``python`` are versions that all its nodes must have.
    """

    request: int
    address: str = ""
    secret: str = ""
    ray: str = ""
    python: str = ""
    is_encrypted: bool = False  # and needs certificates
