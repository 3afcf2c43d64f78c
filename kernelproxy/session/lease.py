"""A lease on an executor of the pool: how it is reached, found again after the connection was lost, and given back."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import monotonic

from gpu_backend.wire import control
from gpu_backend.wire.channels import OpenChannel
from gpu_backend.wire.control import Ticket
from gpu_backend.wire.errors import (
    AnswerOverdue,
    ExecutorStarting,
    NotAuthorized,
    PoolError,
    PoolUnreachable,
    ProtocolError,
    SessionLost,
)
from gpu_backend.wire.groups import Group, JoinGroup
from gpu_backend.wire.views import UsageView
from gpu_backend.wire.wish import Wish
from kernelproxy.session import coming_back, gateway_client
from kernelproxy.session.connection import Connection
from kernelproxy.session.granting import GATEWAY_SECONDS, PATIENCE_SECONDS
from kernelproxy.session.links import as_reached
from kernelproxy.session.signs import Signs
from kernelproxy.session.unreached import ConnectionCut, ConnectionRefused, ExecutorGone, unreached
from kernelproxy.session.wishes import Wishes
from kernelproxy.settings import ClientSettings

#: How long an executor may take to greet us, seconds. After a lost connection each try gets the shorter time.
_GREET_SECONDS = 5.0
_REGREET_SECONDS = 1.0
#: How often in a row a connection may be cut while it is made, before the gateway is asked where the executor is.
_MOST_CUTS = 8
#: How long to wait at the end for what the pool need not hear: the lease ends by itself, only later. Seconds.
FAREWELL_SECONDS = 1.0


class Lease:
    """A lease on an executor, and the first connection to it.

    Parameters
    ----------
    ticket
        What the pool gave.
    settings
        The pool that gave it.
    wishes, signs
        What another session is asked for with, and where is shown what is waited for.
    handed
        Where the provisioner that took the lease finds the ticket to give back; None if this process took it.
    """

    def __init__(
        self, ticket: Ticket, settings: ClientSettings, wishes: Wishes, signs: Signs, handed: Path | None = None
    ) -> None:
        self.ticket = ticket
        #: The tickets of the sessions that were had with it, for whoever opens these.
        self.beside = ticket.beside
        #: Where the provisioner finds the ticket, if it took the lease.
        self.handed = handed
        #: Whether this process took the lease and so gives it back; a provisioner does that for the one it ``handed``.
        self.is_ours = handed is None
        self._settings = settings
        self._wishes, self._signs = wishes, signs
        self._instance = secrets.token_hex(8)
        self._closing = threading.Event()
        #: Why there is no place for a session that has lost its executor; "" unless it waits for one.
        self._waits_for = ""
        #: The first connection, greeted; whoever uses it keeps those that come after it.
        self.connection = self._first_connection()

    def close(self) -> None:
        """Seek no lost connection any more."""
        self._closing.set()

    def give_back(self) -> None:
        """Have the gateway end the session. Takes no lock and touches no connection."""
        give_back(self.ticket, self._settings)

    def vouch(self) -> None:
        """Tell the gateway that this notebook is there; an executor in the middle of a long op cannot."""
        with suppress(PoolError):  # an end that the gateway knows of is heard on the connection, with its reason
            gateway_client.request(self._settings, control.RenewTicket(0, self.ticket.session), GATEWAY_SECONDS)

    def set_wish(self, wish: Wish) -> None:
        """Share the device in another way from now on; raises PoolRefusal if this user may not have that."""
        gateway_client.request(self._settings, control.SetWish(0, self.ticket.session, wish), GATEWAY_SECONDS)

    def open_channel(self, to: str, name: str) -> None:
        """Have our executor reach that of our session ``to``; raises PoolError if the pool cannot, or will not."""
        gateway_client.request(self._settings, OpenChannel(0, self.ticket.session, to, name), GATEWAY_SECONDS)

    def join_group(self, name: str, size: int, rank: int, attempt: str) -> Group:
        """Say, or say again, which rank of a group our session is; raises PoolError if the pool cannot, or will not."""
        message = JoinGroup(0, self.ticket.session, name, size, rank, attempt)
        group = gateway_client.request(self._settings, message, GATEWAY_SECONDS)
        if not isinstance(group, Group):
            raise ProtocolError("The gateway did not answer who is in the group.")
        return group

    def leave_group(self, name: str, size: int, rank: int, attempt: str) -> None:
        """Say that it is over with that; whoever is not heard for some seconds has left as well."""
        message = JoinGroup(0, self.ticket.session, name, size, rank, attempt, leaves=True)
        with suppress(PoolError):
            gateway_client.request(self._settings, message, FAREWELL_SECONDS)

    def usage(self, by: str, since: str) -> UsageView:
        """Return what was used from the day ``since`` on, as this user may see it."""
        view = gateway_client.request(self._settings, control.AskUsage(0, by, since), GATEWAY_SECONDS)
        if not isinstance(view, UsageView):
            raise ProtocolError("The gateway did not answer with a view of the usage.")
        return view

    # --- connecting ---------------------------------------------------------------------------------------------------

    def _first_connection(self) -> Connection:
        """Return a greeted connection. Where there can be none, the place is given back: nobody would use it."""
        try:
            return self._connect_first()
        except BaseException:  # an interrupt too
            for ticket in (self.ticket, *self.beside):
                give_back(ticket, self._settings)
            raise

    def _connect_first(self) -> Connection:
        while True:
            tried = self.ticket
            try:
                return self._connect(1, 0, _GREET_SECONDS)
            except PoolUnreachable as error:
                self._ask_where()
                if self.ticket.epoch == tried.epoch:
                    way = as_reached(tried, self._settings.executor_host)
                    raise unreached(way, error, self._settings.gateway) from None

    def _connect(self, first: int, received: int, timeout_seconds: float) -> Connection:
        """Return a greeted connection. One that is cut while it is made is made again: that says nothing of a key."""
        deadline = monotonic() + timeout_seconds
        for _ in range(_MOST_CUTS):
            try:
                return self._connect_once(first, received, deadline)
            except ConnectionCut as error:
                cut = error
        raise cut

    def _connect_once(self, first: int, received: int, deadline: float) -> Connection:
        ticket = as_reached(self.ticket, self._settings.executor_host)
        connection = Connection(ticket, self._instance, self.is_ours, deadline - monotonic(), self._settings.lanes)
        try:
            connection.greet(first, received, deadline - monotonic())
        except BaseException:  # an interrupt too must leave nothing open
            connection.close()
            raise
        return connection

    # --- a lost connection --------------------------------------------------------------------------------------------

    def renewed(
        self, lost: Connection, place: Callable[[], tuple[int, int]], abandon: Callable[[], None], may_wait: bool
    ) -> Connection:
        """Return a greeted connection in place of the ``lost`` one: to the same executor, or to its successor.

        Parameters
        ----------
        lost
            What was used until now.
        place
            Tells which op has to come first, and which answer was received last.
        abandon
            Forgets all that is under way: called before another executor is greeted, which knows nothing of it.
        may_wait
            Whether the caller is somebody whom a place in a queue may be shown to.
        """
        with self._signs.reconnecting() as look:
            return self._sought(lost, place, abandon, may_wait, look)

    def _sought(
        self,
        lost: Connection,
        place: Callable[[], tuple[int, int]],
        abandon: Callable[[], None],
        may_wait: bool,
        look: Callable[[str], None],
    ) -> Connection:
        lost.close()
        asked = monotonic()
        known = ""
        while True:
            look(known)
            try:
                return self._connect(*place(), _REGREET_SECONDS)
            except (PoolUnreachable, NotAuthorized, SessionLost) as error:
                failed: Exception = error
            if self._closing.is_set() or monotonic() - asked > PATIENCE_SECONDS:
                raise coming_back.not_back(self._waits_for, failed, self.ticket.lease_seconds)
            has_ended = bool(lost.ended_for) or isinstance(failed, ExecutorGone)
            is_answered = self._find(lost.ended_for, has_ended, may_wait)
            if has_ended and not is_answered and monotonic() - asked > coming_back.TOLD_SECONDS:
                raise coming_back.ended(lost.ended_for)
            known = coming_back.REFUSED if isinstance(failed, ConnectionRefused) and not is_answered else ""
            if (self.ticket.session, self.ticket.epoch) != (lost.ticket.session, lost.ticket.epoch):
                abandon()

    def _find(self, told: str, has_ended: bool, may_wait: bool) -> bool:
        """Ask where the session is now, and take another if that is over; False if no gateway answers.

        Its executor may have ``told`` why it ended; whether it did, or is known to have ended, ``has_ended`` says.
        """
        try:
            return self._ask_where(coming_back.TOLD_SECONDS / 2 if has_ended else GATEWAY_SECONDS, told)
        except coming_back.Ended as error:
            if not may_wait:  # it is for whoever uses the arrays to wait for a place, and to hear of it
                raise PoolUnreachable(str(error)) from None
            why = told or str(error)
            self.ticket = coming_back.another(self._settings, self._wishes, self._signs, self.handed, why)
            return True

    def _ask_where(self, seconds: float = GATEWAY_SECONDS, told: str = "") -> bool:
        """Ask the gateway where the session is now; False if it does not answer, and all stays as we know it."""
        try:
            answer = coming_back.where(self._settings, self.ticket.session, seconds, told)
        except (PoolUnreachable, ExecutorStarting) as error:
            return isinstance(error, ExecutorStarting | AnswerOverdue)  # it is there, and has not found a place yet
        self._waits_for = answer.reason if isinstance(answer, control.Queued) else ""
        self.ticket = answer if isinstance(answer, Ticket) else self.ticket
        return True


def give_back(ticket: Ticket, settings: ClientSettings) -> None:
    """Have the gateway end the session of ``ticket``, used yet or not."""
    with suppress(PoolError):  # the lease runs out by itself
        gateway_client.request(settings, control.CloseSession(0, ticket.session), FAREWELL_SECONDS)
