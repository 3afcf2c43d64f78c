"""How a session gets its place: asked for, waited for in the queue, launched; and how it gets another one."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from time import monotonic, time

from msgspec.structs import replace

from gpu_backend.gateway.admission import admit, left_bytes
from gpu_backend.gateway.changes import Changes
from gpu_backend.gateway.directory import User
from gpu_backend.gateway.entitlements import refuse_own_device, refuse_wish
from gpu_backend.gateway.ledger import Ledger, today
from gpu_backend.gateway.loads import DeviceLoad
from gpu_backend.gateway.nodes import Nodes
from gpu_backend.gateway.placement import place, placeable, refuse_beside_own, refuse_unwalled, with_sessions
from gpu_backend.gateway.placing import reason
from gpu_backend.gateway.queue import Name, Waiter, expected_wait
from gpu_backend.gateway.queueing import Line
from gpu_backend.gateway.refusals import Refusal
from gpu_backend.gateway.sessions import NotRecorded, Sessions
from gpu_backend.gateway.settings import GatewaySettings
from gpu_backend.gateway.several import refuse_several_gpus
from gpu_backend.gateway.tickets import Tickets, denied, order
from gpu_backend.lifecycle import events as ev
from gpu_backend.lifecycle.states import HELD, Session, SessionState
from gpu_backend.wire.bounds import MOST_BYTES
from gpu_backend.wire.control import Denied, FromGateway, OpenSession, Queued, RenewTicket, RestartSession
from gpu_backend.wire.errors import RefusalCode
from gpu_backend.wire.words import printable

_LONGEST_LABEL = 200
_LONGEST_WAITER = 64
#: Most notebooks of one user that may wait at a time.
_MOST_WAITING = 16
#: For how long it is remembered who has left the queue, seconds: longer than any question is under way.
_LEFT_SECONDS = 30.0
_MOST_LEFT = 4096
_MAY_BE_BACK = "That is as the pool is now; a machine that is not heard may be back soon."
_BEING_STOPPED = Refusal(RefusalCode.STOPPING, "The pool is being stopped by its operator.", "Try again when it is up.")


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asks, with which key, and until when they must have an answer (monotonic)."""

    user: User
    key: str
    deadline: float

    @property
    def remaining(self) -> float:
        """Seconds until the answer is due."""
        return self.deadline - monotonic()


class Opening:
    """Finds places for sessions, one asker after the other."""

    def __init__(
        self, settings: GatewaySettings, nodes: Nodes, sessions: Sessions, ledger: Ledger, changes: Changes, line: Line
    ) -> None:
        self._settings = settings
        self._nodes = nodes
        self._sessions = sessions
        self._ledger = ledger
        self._changes = changes
        self._line = line
        self._tickets = Tickets(nodes, sessions, ledger.is_unused)
        #: Who has left the queue on purpose, and when (monotonic): a question of theirs may still be under way.
        self._left: dict[Name, float] = {}
        #: How long those who have left the queue with a place had waited: how many, and seconds in all.
        self.waits, self.waited_seconds = 0, 0.0
        #: True once the pool is being stopped: places that come free then are nobody's.
        self.is_over = False

    # --- requests -----------------------------------------------------------------------------------------------------

    async def open(self, asker: Asker, message: OpenSession) -> FromGateway:
        """Open a session, or as many as are wanted at once, or say why not, or that the asker has to wait."""
        refusal = _BEING_STOPPED if self.is_over else self._refuse(asker, message)
        if refusal is not None:
            return denied(message.request, refusal)
        given = await self._given(asker, message)
        if given is not None:  # the answer before this one was lost
            return given
        memory_bytes = message.memory_bytes or self._default_bytes(asker, message.wish.devices * message.wish.sessions)
        waiter = Waiter(
            client_key=asker.key, waiter=message.waiter or secrets.token_hex(8), user=asker.user.name,
            label=printable(message.label, _LONGEST_LABEL), since=time(), kind=message.device_kind[:16],
            memory_bytes=memory_bytes, wish=message.wish,
        )  # fmt: skip
        await self._some_node(asker)
        found = await self._find(asker, waiter, may_wait=bool(message.waiter))
        if not isinstance(found, DeviceLoad):
            return _no_place(message.request, found)
        return await self._launch(asker, message, waiter, found)

    async def renew(self, asker: Asker, message: RenewTicket) -> FromGateway:
        """Return the ticket of a session again, with another place if it has lost the one it had."""
        session = self._owned(message, asker)
        if isinstance(session, Denied):
            return session
        if session.state is SessionState.LOST:
            return await self._elsewhere(asker, message, session, ev.TicketWanted)
        return await self._again(message.request, ev.TicketWanted(session.id, None), asker)

    async def restart(self, asker: Asker, message: RestartSession) -> FromGateway:
        """Give a session a fresh executor, where it was if that can be."""
        session = self._owned(message, asker)
        if isinstance(session, Denied):
            return session
        await self._some_node(asker)
        if session.state is SessionState.LOST or not self._nodes.takes_sessions(session.node):
            return await self._elsewhere(asker, message, session, ev.RestartWanted)
        spot = ev.Place(session.node, session.ordinal, session.device_kind, session.placed, session.others)
        return await self._again(message.request, ev.RestartWanted(session.id, spot), asker)

    def leave(self, key: str, waiter: str) -> None:
        """Let somebody wait no more; if they were given sessions that they do not know of yet, close these."""
        now = monotonic()
        self._left[key, waiter[:_LONGEST_WAITER]] = now
        while (eldest := next(iter(self._left.items())))[1] < now - _LEFT_SECONDS or len(self._left) > _MOST_LEFT:
            del self._left[eldest[0]]
        self._line.leave((key, waiter))
        self._changes.tell()
        opened = [one.id for one in self._tickets.opened_for(key, waiter)]
        self._tickets.close(opened, "Its notebook did not wait for it any more.")

    def close_beside(self, session: Session) -> None:
        """Close what was opened beside a ``session`` that is closed, the first, as far as nobody came for it."""
        opened = self._tickets.opened_for(session.client_key, session.waiter)
        later = [one for one in opened if order(one) > order(session)]
        self._tickets.close(one.id for one in later if self._ledger.is_unused(one))

    # --- a place ------------------------------------------------------------------------------------------------------

    def _refuse(self, asker: Asker, message: OpenSession) -> Refusal | None:
        if not 0 <= message.memory_bytes <= MOST_BYTES:
            return Refusal(RefusalCode.MALFORMED, f"{message.memory_bytes} is no number of bytes.", "")
        if len(message.waiter) > _LONGEST_WAITER:
            return Refusal(RefusalCode.MALFORMED, "The name of a waiter has at most 64 characters.", "")
        rights = self._ledger.rights(asker.user.name)
        return refuse_wish(message.wish, rights) or refuse_own_device(
            message.wish, rights, [one for one in self._sessions.held() if one.user == asker.user.name]
        )

    async def _find(self, asker: Asker, waiter: Waiter, may_wait: bool) -> DeviceLoad | Queued | Refusal:
        """Return a place for a session that is not there yet; wait for one until the answer is due."""
        user = asker.user.name
        while True:
            if waiter.name in self._left:
                return Refusal(RefusalCode.ENDED, "You have left the queue.", "Ask under another name.")
            waiter = self._line.anew(waiter)
            would_wait = may_wait and waiter.name not in self._line
            line = self._line.ordered() if would_wait else []
            queued = [one.user for one in line for _ in range(one.wish.sessions)]
            accounts = self._ledger.accounts_of(user)
            count = waiter.wish.sessions
            in_all = waiter.memory_bytes * waiter.wish.devices * count
            refusal = admit(in_all, self._sessions.all.values(), accounts, today(), queued, count)
            if refusal is None and sum(one.user == user for one in line) >= _MOST_WAITING:
                refusal = _too_many_waiting()
            if refusal is not None:
                self._line.leave(waiter.name)
                return refusal
            found = await self._wait(asker, waiter, may_wait)
            if found is not None:
                return found

    async def _wait(self, asker: Asker, waiter: Waiter, may_wait: bool) -> DeviceLoad | Queued | Refusal | None:
        """Return a place, or that there is none for now or for good; None if it is time to look again."""
        # Here, where nothing is waited for until it is placed: also who comes back must not get where no walls are.
        refused = refuse_unwalled(self._nodes.devices(), asker.user.is_operator) if self._settings.needs_walls else None
        if refused is None and not self._settings.gives_several_gpus:
            refused = refuse_several_gpus(self._nodes.devices(), waiter.kind, waiter.wish.devices)
        if refused is not None:
            self._line.leave(waiter.name)
            return refused
        was_waiting = waiter.name in self._line
        spot = self._line.spot(waiter)
        if isinstance(spot, DeviceLoad):
            self._note_wait(waiter)
            return spot
        spot = self._for_now(waiter, spot)
        if spot.code is not RefusalCode.POOL_FULL or not may_wait:
            self._line.leave(waiter.name)
            return self._with_queue(self._beside_own(waiter) or spot)
        self._line.hear(waiter)
        # Who comes anew hears at once that they wait; who waits already has nothing better to do.
        if not was_waiting or asker.remaining <= 0:
            return self._queued(waiter)
        await self._changes.wait(min(1.0, max(0.01, asker.remaining)))
        return None

    def _queued(self, waiter: Waiter) -> Queued:
        ordered = self._line.ordered()
        position = [one.name for one in ordered].index(waiter.name) + 1
        loads = with_sessions(self._nodes.devices(), self._sessions.all.values())
        plain = self._beside_own(waiter) or place(
            loads, waiter.kind, waiter.memory_bytes, waiter.wanted, self._line.rules
        )
        reason = (
            self._for_now(waiter, plain).message
            if isinstance(plain, Refusal)
            else "The places that are free are others' who wait."
        )
        serving = [device for device in loads if waiter.kind in ("", device.kind)]
        places = sum(device.sessions for device in serving)
        needed = sum(one.wish.sessions for one in ordered[:position])
        guess = expected_wait(needed, places, self._ledger.accounts.lengths())
        return Queued(0, position, len(ordered), guess, reason)

    def _for_now(self, waiter: Waiter, refusal: Refusal) -> Refusal:
        """Return a ``refusal`` of several sessions as one for now, if a machine that is silent may be why.

        Who waits already, waits on: just after a start, nobody knows what the machines have that were not heard yet.
        """
        if waiter.wish.sessions == 1 or refusal.code is RefusalCode.POOL_FULL:
            return refusal
        if waiter.name not in self._line:
            devices = self._nodes.devices(self._settings.node_lost_seconds)
            known = placeable(devices, self._settings.needs_walls)
            found = place(known, waiter.kind, waiter.memory_bytes, waiter.wanted)
            if isinstance(found, Refusal) and found.code is not RefusalCode.POOL_FULL:
                return refusal
        return Refusal(RefusalCode.POOL_FULL, f"{refusal.message} {_MAY_BE_BACK}", refusal.remedy)

    def _beside_own(self, waiter: Waiter) -> Refusal | None:
        # What is closing leaves by itself: a notebook that has given up its own to wait for more is in nobody's way.
        staying = [one for one in self._sessions.all.values() if one.state is not SessionState.CLOSING]
        loads = with_sessions(self._nodes.devices(), staying)
        return refuse_beside_own(loads, waiter.kind, waiter.memory_bytes, waiter.wanted)

    def _with_queue(self, refusal: Refusal) -> Refusal:
        if refusal.code is not RefusalCode.POOL_FULL or not len(self._line):
            return refusal
        return Refusal(refusal.code, f"{refusal.message} {len(self._line)} wait for one.", refusal.remedy)

    def _note_wait(self, waiter: Waiter) -> None:
        since = next((one.since for one in self._line.ordered() if one.name == waiter.name), None)
        if since is not None:
            self.waits += 1
            self.waited_seconds += max(0.0, time() - since)

    # --- a session ----------------------------------------------------------------------------------------------------

    async def _launch(self, asker: Asker, message: OpenSession, waiter: Waiter, spot: DeviceLoad) -> FromGateway:
        if self.is_over:  # also for who waited when the stop began, and was found a place that it made free
            return denied(message.request, _BEING_STOPPED)
        given = await self._given(asker, message)
        if given is not None:  # who asks again may do so while an earlier question of theirs is under way
            return given
        self._line.leave(waiter.name)
        opened: list[str] = []
        try:
            self._admit(asker, message, waiter, spot, opened)
        except NotRecorded as error:
            self._tickets.close(opened)
            return denied(message.request, _not_recorded(error))
        return await self._tickets.of_all(opened, message, asker.remaining)

    def _admit(self, asker: Asker, message: OpenSession, waiter: Waiter, spot: DeviceLoad, opened: list[str]) -> None:
        """Open a session at each place that was found, and note it in ``opened``; raises NotRecorded."""
        count, now = message.wish.sessions, time()
        if len(spot.places) != count:
            raise RuntimeError(f"{len(spot.places)} places were found for {count} sessions")
        left = self._left_bytes(asker) // (message.wish.devices * count)
        # All are of one moment: by their names it is told who is first.
        names = sorted(secrets.token_hex(8) for _ in range(count))
        for one, session in zip(spot.places, names, strict=True):
            admitted = ev.SessionAdmitted(
                session=session, user=asker.user.name, client_key=asker.key, label=waiter.label,
                place=self._place(one, waiter),
                memory_limit_bytes=waiter.memory_bytes or min(left, one.total_bytes),
                lease_seconds=self._settings.lease_seconds, opened_at=now, wish=replace(message.wish, sessions=1),
                waiter=message.waiter, has_promise=bool(waiter.memory_bytes),
            )  # fmt: skip
            self._sessions.apply(admitted)
            opened.append(session)

    async def _given(self, asker: Asker, message: OpenSession) -> FromGateway | None:
        """Return the tickets of what was opened for somebody under the name that they ask with; None if not all is."""
        opened = self._tickets.opened_for(asker.key, message.waiter)
        if opened and message.wish.sessions == 1:
            return await self.renew(asker, RenewTicket(message.request, opened[0].id, True))
        return await self._tickets.again(opened, message, asker.remaining)

    def _place(self, device: DeviceLoad, waiter: Waiter) -> ev.Place:
        """Return ``device`` as a place, with the reason for it."""
        loads = with_sessions(self._nodes.devices(), self._sessions.all.values(), self._ledger.mixes())
        before = next((one for one in loads if (one.node, one.ordinal) == (device.node, device.ordinal)), device)
        why = reason(before, waiter.wanted, loads, self._line.rules)
        return ev.Place(device.node, device.ordinal, device.kind, why, device.others)

    def _default_bytes(self, asker: Asker, devices: int) -> int:
        """Return what a session is promised that asks for no amount: the pool's default, if so much is left."""
        default = self._settings.default_memory_bytes
        return min(default, self._left_bytes(asker) // devices or default)

    def _left_bytes(self, asker: Asker) -> int:
        return left_bytes(self._sessions.all.values(), self._ledger.accounts_of(asker.user.name))

    async def _elsewhere(
        self,
        asker: Asker,
        message: RenewTicket | RestartSession,
        session: Session,
        wanted: type[ev.TicketWanted | ev.RestartWanted],
    ) -> FromGateway:
        """Give a session that has lost its place another; wait for one until the answer is due."""
        await self._some_node(asker)
        waiter = Waiter(
            client_key=asker.key, waiter=session.id, user=session.user, label=session.label, since=time(),
            kind=session.device_kind, memory_bytes=session.memory_limit_bytes if session.has_promise else 0,
            has_lease=True, wish=session.wish,
        )  # fmt: skip
        while (found := await self._wait(asker, self._line.anew(waiter), message.may_wait)) is None:
            pass
        if not isinstance(found, DeviceLoad):
            return _no_place(message.request, found)
        return await self._again(message.request, wanted(session.id, self._place(found, waiter)), asker)

    async def _again(self, request: int, wanted: ev.TicketWanted | ev.RestartWanted, asker: Asker) -> FromGateway:
        self._line.leave((asker.key, wanted.session))
        outcome = await self._sessions.wait_for(wanted, wanted.session, asker.remaining)
        held = self._sessions.all[wanted.session].state in HELD
        return self._tickets.of(request, outcome, RefusalCode.LAUNCH_FAILED if held else RefusalCode.ENDED)

    async def _some_node(self, asker: Asker) -> None:
        """Give agents the time to be heard: just after a start, nobody has been yet."""
        while not self._nodes.names() and (remaining := asker.remaining) > 0:
            await self._nodes.reports.wait(remaining)

    def _owned(self, message: RenewTicket | RestartSession, asker: Asker) -> Session | Denied:
        session = self._sessions.found(message.session)
        if session is None or session.user != asker.user.name:
            return Denied(
                message.request, RefusalCode.UNKNOWN_SESSION,
                "The pool has no such session of yours: it has ended, or never was.",
            )  # fmt: skip
        if session.client_key != asker.key:
            return Denied(
                message.request, RefusalCode.NOT_AUTHORIZED, "The session was opened with another key of yours.",
                "Use that key, or restart the kernel for a session of its own.",
            )  # fmt: skip
        if session.state is SessionState.CLOSED:
            return Denied(message.request, RefusalCode.ENDED, session.reason or "It has ended.")
        return session


def _too_many_waiting() -> Refusal:
    return Refusal(
        RefusalCode.QUOTA, f"{_MOST_WAITING} of your notebooks wait for a place already.", "Interrupt one that waits."
    )


def _not_recorded(error: NotRecorded) -> Refusal:
    return Refusal(
        RefusalCode.LAUNCH_FAILED, f"The pool cannot record a new session: {error}.",
        "Running sessions go on. Ask the pool's operator to make room on the disk that holds its records.",
    )  # fmt: skip


def _no_place(request: int, found: Queued | Refusal) -> FromGateway:
    return denied(request, found) if isinstance(found, Refusal) else replace(found, request=request)
