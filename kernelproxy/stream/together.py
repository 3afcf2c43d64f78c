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
    why = _open_first(client)
    is_kept = client.opened is not None and not client.opened.beside
    if not client.members:
        return
    try:
        _open_beside(client, why)
    except PoolFull:
        if not is_kept:
            raise
        client.wishes.apart = client.label  # a kernel that has started again gives up what it had, and waits for all
        _open_beside(client, _open_first(client))


def _open_first(client: Opener) -> str:
    """Take the session of all devices or of the first; return why they cannot be had together, as far as is known."""
    try:
        session, why = _together_or_apart(client)
    except BaseException:  # an interrupt too: whoever asks next is alone again
        if client.wishes.apart:
            client.part_with()
        raise
    client.begin(session)
    return why


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


def _open_beside(client: Opener, why: str) -> None:
    """Take the sessions of all other devices; without them there is none."""
    try:
        _take_beside(client)
    except BaseException as error:  # an interrupt too: who has some of them has none
        count = len(client.members)
        client.give_up()
        if isinstance(error, PoolRefusal):
            raise _neither(error, why, count) from None
        raise


def _take_beside(client: Opener) -> None:
    others = client.members[1:]
    for one, ticket in zip(others, client.opened.beside if client.opened is not None else (), strict=False):
        one.granted = ticket
    for one in others:
        one.begin(one.open(may_wait=False))


def _neither(error: PoolRefusal, why: str, count: int) -> PoolRefusal:
    return type(error)(f"{why}Nor can {count} devices be had of a session each: {error}")
