"""The sessions of a notebook's devices: one that has all of them, or one for each, together or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from gpu_backend.wire.control import Ticket
from gpu_backend.wire.errors import NoDevice, PoolFull, PoolRefusal
from kernelproxy.session.wishes import Wishes
from kernelproxy.settings import ClientSettings
from kernelproxy.stream.session import Session


class Opener(Protocol):
    """What opens a session, and has others beside it."""

    wishes: Wishes
    granted: Ticket | None
    label: str
    number: int

    @property
    def settings(self) -> ClientSettings:
        """Which pool."""

    @property
    def members(self) -> Sequence[Opener]:
        """Who has the devices, it first; empty while there is one session."""

    @property
    def opened(self) -> Session | None:
        """Its session, if there is one."""

    def open(self, label: str = "", may_wait: bool = True, sessions: int = 1) -> Session: ...

    def begin(self, opened: Session) -> None: ...

    def part_with(self) -> None: ...

    def give_up(self) -> None: ...


def open_all(client: Opener) -> None:
    """Have ``client`` take the session of all devices or, where so many cannot be had together, one for each.

    Whoever waits for them in the pool's queue holds none of them meanwhile: two who had one each, and waited for
    another, would wait for ever.
    """
    if client.number:  # how many there are is the first one's to say
        client.begin(client.open())
        return
    if not _have_all(client):
        client.wishes.apart = client.label  # a kernel that has started again gives up what it had, and waits for all
        _have_all(client, had_one=False)


def _have_all(client: Opener, had_one: bool = True) -> bool:
    """Take the session of all devices or one for each; False, and there is none, if it had one and lacks the others.

    From the answer on all are taken over or given back, whatever comes between: an interrupt too.
    """
    session, why = None, ""
    try:
        session, why = _together_or_apart(client)
        client.begin(session)
        _take_beside(client, session)
    except BaseException as error:  # an interrupt too: who has some of them has none
        count = len(client.members)
        _give_back(client, session)
        if session is None or not count or not isinstance(error, PoolRefusal):
            raise
        if isinstance(error, PoolFull) and had_one and not session.beside:
            return False
        raise _neither(error, why, count) from None
    return True


def _together_or_apart(client: Opener) -> tuple[Session, str]:
    count, why = client.wishes.count(client.settings), ""
    if not client.wishes.apart:
        try:
            return client.open(), ""
        except NoDevice as refused:
            if count == 1:
                raise
            why = f"{refused} "
        client.wishes.apart = client.label
    try:
        return client.open(sessions=count), why
    except PoolRefusal as error:
        raise _neither(error, why, count) from None


def _take_beside(client: Opener, session: Session) -> None:
    """Take the sessions of all other devices, if there are any; with the tickets that came with the first."""
    for one, ticket in zip(client.members[1:], session.beside, strict=False):
        one.granted = ticket
    for one in client.members[1:]:
        one.begin(one.open(may_wait=False))


def _give_back(client: Opener, session: Session | None) -> None:
    """Have the pool end what was given so far, be it taken over or not; whoever asks next is alone again."""
    if session is None:
        if client.wishes.apart:
            client.part_with()
        return
    if client.opened is not session:
        session.close(release=True)
    if not client.members:
        return
    for one, ticket in zip(client.members[1:], session.beside, strict=False):
        if one.opened is None:  # its ticket may be with nobody, on its way to the one who begins with it
            one.granted = ticket
    client.give_up()


def _neither(error: PoolRefusal, why: str, count: int) -> PoolRefusal:
    return type(error)(f"{why}Nor can {count} devices be had of a session each: {error}")
