"""That an executor cannot be reached, and what to tell of one that a session was given."""

from __future__ import annotations

from gpu_backend.transport import local
from gpu_backend.transport.reaching import NotReached
from gpu_backend.wire.control import Ticket
from gpu_backend.wire.errors import PoolUnreachable


class ExecutorEnded(NotReached):
    """This host's own system says that nobody listens under the executor's name: its process has ended."""


class ConnectionCut(PoolUnreachable):
    """The executor was reached, and the connection was cut before it was of use. Trying again helps."""


class ExecutorGone(PoolUnreachable):
    """The executor has ended, and its arrays with it."""


class ConnectionRefused(PoolUnreachable):
    """Something on the way to the executor's host, or that host, says that no executor listens there."""


def unreached(ticket: Ticket, why: Exception, gateway: str) -> PoolUnreachable:
    """Return the exception that says what could not be reached, why probably, and what to do."""
    reason = str(why).rpartition(": ")[2].rstrip(".")
    far = next((one.removeprefix("tls://") for one in ticket.endpoints if one.startswith("tls://")), "")
    if not far or any(map(local.is_here, ticket.endpoints)):
        return PoolUnreachable(
            f"The pool gave this notebook an executor of this machine, and that does not answer ({reason}). The place "
            "was given back. Run the cell again for another; if it stays so, tell the pool's operator."
        )
    return PoolUnreachable(
        f"The pool at {gateway} gave this notebook an executor at {far}, and that cannot be reached from here "
        f"({reason}). Probably a firewall or a tunnel on the way lets only the gateway's port through; each executor "
        "listens on a port of its own, so ask the pool's operator to let your machine reach "
        f"{far.rpartition(':')[0]} on those too (`executor_ports` in pool.toml says which they are). The place was "
        "given back. `workbench doctor` tells which of the ports is shut."
    )
