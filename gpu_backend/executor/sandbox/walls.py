"""What a launcher decides about the sandbox of one executor."""

from __future__ import annotations

import msgspec

__all__ = ["Walls"]


class Walls(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the walls stand that depend on the pool and on the device. The rest is the same for all."""

    #: Directories of the pool's own: nothing in them may be reached, but for the executor's own.
    private: tuple[str, ...] = ()
    #: Directories that may not be reached as a whole; an interpreter may live in them.
    homes: tuple[str, ...] = ()
    #: Device nodes to compute with.
    devices: tuple[str, ...] = ()
    #: Whether several GPUs are among them: CUDA then makes calls by which objects of others can be taken, too.
    has_several_gpus: bool = False
    #: Whether it reaches its GPU through an MPS daemon: the MPS profile, in which CUDA may connect to it as it begins.
    is_mps_client: bool = False
    #: Further directories that may be read.
    also_read: tuple[str, ...] = ()
