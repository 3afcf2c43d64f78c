"""What a notebook does, and says, when the pool has its session no more, or is away itself."""

from __future__ import annotations

import secrets
from pathlib import Path

import msgspec

from gpu_backend.wire.control import FromGateway, RenewTicket, Ticket
from gpu_backend.wire.errors import (
    ExecutorStarting,
    KeyRefused,
    NotAuthorized,
    PoolError,
    PoolFull,
    PoolRefusal,
    PoolUnreachable,
    SessionLost,
)
from kernelproxy.session import gateway_client, handover
from kernelproxy.session.granting import PATIENCE_SECONDS, granted
from kernelproxy.session.signs import Signs
from kernelproxy.session.wishes import Wishes
from kernelproxy.settings import ClientSettings

#: How long the gateway is asked where the session is now, once the executor is known to have ended, seconds. Nothing is
#: waited for that could save the arrays, and a gateway that is restarted is back in about one.
TOLD_SECONDS = 2.0
#: What is said while a connection to another host is refused: who refuses may be a firewall or a tunnel on the way.
REFUSED = "the executor's port is shut and the gateway does not answer: the pool may have been stopped"

_STOPPED = "When it is up again, run your cells again from the top: this notebook then takes another session by itself."


class Ended(SessionLost):
    """The gateway says that the session has ended. Another can be had."""


def where(settings: ClientSettings, session: str, seconds: float, told: str) -> FromGateway:
    """Ask the gateway where ``session`` is, for so long at most, and return its answer.

    Its executor may have ``told`` why it ended.

    Raises
    ------
    PoolUnreachable
        If it does not answer.
    ExecutorStarting
        If the session's next executor is on its way.
    SessionLost
        If the pool no longer has the session for us; an `Ended` if it has none of that name.
    NotAuthorized
        If we cannot ask it with this key, or it is another pool: nothing is known of the session, and asking again may
        help.
    """
    try:
        return gateway_client.request(settings, RenewTicket(0, session, may_wait=True), seconds)
    except KeyRefused as error:
        raise _shut_out(told, error) from None
    except (PoolUnreachable, ExecutorStarting, NotAuthorized):
        raise
    except SessionLost as error:
        raise Ended(str(error)) from None
    except PoolError as error:
        raise SessionLost(f"{told} The pool no longer has this session. {error}".strip()) from None


def another(settings: ClientSettings, wishes: Wishes, signs: Signs, handed: Path | None, why: str) -> Ticket:
    """Return the ticket of a session in place of one that the pool has no more, ended for ``why``.

    Waits in the queue of a full pool; an interrupt gives up. ``handed`` is where the provisioner looks for the session
    that it has to give back, if there is one.

    Raises
    ------
    SessionLost
        If our key is good no more.
    NotAuthorized, PoolRefusal, PoolUnreachable
        If there is no session to be had now; trying again may help. The message says what was lost.
    """
    try:
        request = msgspec.structs.replace(wishes.opening(settings), waiter=secrets.token_hex(8))
        ticket = granted(settings, request, signs)
    except KeyRefused as error:
        raise _shut_out(why, error) from None
    except NotAuthorized as error:
        raise NotAuthorized(f"{_lost(why)} {error}") from None
    except PoolFull as error:
        raise PoolFull(f"{_lost(why)} {error}") from None
    except PoolRefusal as error:
        raise PoolRefusal(f"{_lost(why)} {error}") from None
    except PoolUnreachable as error:
        raise PoolUnreachable(f"{_lost(why)} {error}") from None
    if handed is not None:
        handover.write(ticket, handed)
    return msgspec.structs.replace(ticket, former_end=why)


def ended(told: str) -> PoolUnreachable:
    """Return what to raise where the executor has ended and no gateway answers. It may have ``told`` why."""
    why = told or "The process that held this notebook's arrays has ended."
    guess = "" if told else ": it may have been stopped"
    return PoolUnreachable(f"{_lost(why)} The pool cannot be reached now{guess}. {_STOPPED}")


def not_back(waits_for: str, error: Exception, lease_seconds: float) -> PoolFull | PoolUnreachable:
    """Return what to raise where a lost connection did not come back in time."""
    if waits_for:
        return PoolFull(
            f"This notebook's executor has ended, and there is no place for another: {waits_for} Run the cell again to "
            "go on waiting, or restart the kernel."
        )
    return PoolUnreachable(
        f"The connection to the pool was lost and did not come back within {PATIENCE_SECONDS:.0f} s. {error} Whether "
        "your arrays are still there cannot be known from here. If the pool has ended, they are lost. If only the way "
        f"to it is gone, it keeps them for {lease_seconds:.0f} s from when it last heard this notebook: run the cell "
        f"again when the way is back. {_STOPPED} `workbench doctor` says what is wrong."
    )


def _shut_out(told: str, error: KeyRefused) -> SessionLost:
    """Return what to raise where the pool does not admit our key any more. Whoever was ``told`` why is not told twice.

    That is final for this kernel: whether the pool ever admits it again is for people to settle.
    """
    why = f"{told} The pool does not admit this notebook's key any more." if told else str(error)
    return SessionLost(
        f"{why} The arrays of this notebook are lost. Once the pool's operator has admitted the key again (`workbench "
        "doctor` shows it), restart the kernel."
    )


def _lost(why: str) -> str:
    return f"{why or 'This session has ended.'} The arrays of this notebook are lost with it."
