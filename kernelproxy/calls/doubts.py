"""What of linear algebra is proved and yet not sure in a session, because of what its user has chosen there."""

from __future__ import annotations

from gpu_backend.opstream.proof.outcome import Unproved
from kernelproxy import compiled
from kernelproxy.calls.error_state import ErrorState
from kernelproxy.client import Client

_SOLVE = "cupy.linalg.solve"


class Solvers:
    """Whether a client has chosen which systems are solved all at once: how their solutions lie follows from that."""

    def __init__(self, client: Client) -> None:
        self.are_chosen = False


def doubted(client: Client, qualname: str) -> Unproved | None:
    """Return why ``client`` has to ask for what ``qualname`` gives, whatever is proved of it; None if it need not."""
    if client.part(ErrorState).linalg_may_raise:
        return Unproved("errors of linear algebra are asked for")
    if qualname == _SOLVE and client.part(Solvers).are_chosen:
        return Unproved("a setting of the executor chooses the solver")
    return None


compiled.learn(doubted=doubted)
