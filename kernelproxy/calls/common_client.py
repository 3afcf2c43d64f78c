"""Whose an array is: a client's, and what is computed with it is computed there."""

from __future__ import annotations

from gpu_backend.wire.errors import SessionLost
from kernelproxy.client import Client
from kernelproxy.stream.joined import out_of_reach


class MixedClients(ValueError):
    """Arrays of two clients were given to one call."""


def common(first: Client | None, second: Client | None) -> Client | None:
    """Return the one client of two operands; None stands for an operand that is nobody's.

    Raises
    ------
    MixedClients
        If they are of two.
    SessionLost
        If one of them was left.
    ValueError
        If these are for two devices of one notebook, in CuPy's words.
    """
    if first is None or second is None or first is second:
        return first if second is None else second
    if gone := first.over or second.over:
        raise SessionLost(gone)
    if second in first.members:
        here = first.streams.device
        raise out_of_reach(second.number if first.number == here else first.number, here)
    raise MixedClients(
        "This call is given arrays of two clients of the pool. Each lies in the session of the client that made it, "
        "and no device reaches both. Bring one over first: `with client: y = cupy.asarray(x.get())`."
    )
