"""Channels to the executors of a notebook's other devices, by which what is copied from one to the other passes.

An executor connects to nothing. Its agent hands over a connection; the proof that both are one user's takes a moment,
and a thread of its own. What passes are pieces, each with a number: the notebook tells one side to send it and the
other where it belongs. An op that lacks something, be it the channel, room or a piece, waits without being run.
"""

from __future__ import annotations

import logging
import os
import select
import socket
import threading
from collections.abc import Callable
from queue import SimpleQueue
from time import monotonic, sleep
from typing import Final, NamedTuple

from gpu_backend.executor.channel import Channel
from gpu_backend.transport.channel import is_silent
from gpu_backend.transport.lost import ConnectionLost
from gpu_backend.transport.message_socket import MessageSocket
from gpu_backend.transport.reaching import Expected, reach_by
from gpu_backend.wire.channels import MOST_NAME, Last, Meet, NoPiece, TakeChannel
from gpu_backend.wire.codec import Frame
from gpu_backend.wire.errors import NotCopied

__all__ = ["Awaits", "Channels"]

log = logging.getLogger("executor.channels")

#: How long the proof and the greeting may take, seconds; and how long the notebook is kept waiting for a channel.
_PROOF_SECONDS: Final = 10.0
_COMING_SECONDS: Final = 12.0
#: Channels at a time, connections that are being proved, and failures that are remembered.
_MOST_CHANNELS: Final = 32
#: How often to look whether the hosts of peers still answer, and for what can go, seconds.
_TIDY_SECONDS: Final = 1.0
#: How long an executor that ends waits for others to take what it has sent, and how often it looks, seconds.
_LEAVE_SECONDS: Final = 3.0
_LEAVE_LOOK_SECONDS: Final = 1e-3
#: What lost channels have brought is kept up to so many bytes: as much as fifteen bring that each are full.
_MOST_LOST_BYTES: Final = 256 << 20
_LOST: Final = (
    "What was copied from one device to another has not come, and the array that it was for is not what it should be: "
    "{}. Run the cell again."
)


class Awaits(Exception):
    """Raised by an op that has done nothing yet and lacks something; ``has_come`` tells when it can be run again."""

    def __init__(self, has_come: Callable[[], bool]) -> None:
        super().__init__("It waits for what has not come yet.")
        self.has_come = has_come


class _Reached(NamedTuple):
    """What became of a connection that was handed over."""

    name: str
    connected: MessageSocket | None
    failure: str = ""


class Channels:
    """All channels of one executor. ``poll`` is told of what wakes a sleeper; without one there can be none.

    Raises
    ------
    OSError
        If the system has no descriptor left.
    """

    def __init__(self, poll: select.epoll | None = None) -> None:
        self._poll = poll
        self._named: dict[str, Channel] = {}
        self._unmet: list[Channel] = []
        #: Why there is none, and until when the notebook waits for one (monotonic), by its name.
        self._failed: dict[str, str] = {}
        self._due: dict[str, float] = {}
        self._reached: SimpleQueue[_Reached] = SimpleQueue()
        self._under_proof = 0
        self._bell = -1
        if poll is not None:
            self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
            poll.register(self._bell, select.EPOLLIN)
        self._tidy_at = 0.0
        #: Whether there are any, or may be soon: else nobody need look.
        self.is_used = False

    # --- as they come -------------------------------------------------------------------------------------------------

    def take(self, order: TakeChannel, descriptor: int | None) -> None:
        """Prove to the other end of a connection that was handed over who is here; the descriptor is ours now."""
        self.is_used = True
        if descriptor is None:
            self._fail(order.channel, order.failure)
            return
        try:
            connected = socket.socket(fileno=descriptor)
        except OSError as error:
            os.close(descriptor)
            self._fail(order.channel, str(error))
            return
        if self._under_proof >= _MOST_CHANNELS:
            connected.close()
            self._fail(order.channel, "too many are on their way")
            return
        self._prove(order, connected)

    def _prove(self, order: TakeChannel, connected: socket.socket) -> None:
        reaching = threading.Thread(
            target=self._reach, args=(order, connected, self._bell), name="channel", daemon=True
        )
        try:
            reaching.start()
        except RuntimeError as error:  # the system has no thread left
            connected.close()
            self._fail(order.channel, str(error))
        else:
            self._under_proof += 1

    def _reach(self, order: TakeChannel, connected: socket.socket, bell: int) -> None:
        try:
            expected = Expected(bytes.fromhex(order.secret), order.certificate)
            reached = _Reached(order.channel, reach_by(connected, expected, _PROOF_SECONDS))
        except Exception as error:  # whatever it is, the notebook waits to hear of it
            connected.close()
            reached = _Reached(order.channel, None, str(error) or type(error).__name__)
        self._reached.put(reached)
        os.eventfd_write(bell, 1)

    def admit(self, connected: MessageSocket) -> None:
        """Let another executor in, which is about to say which channel it is."""
        self.is_used = True
        self._follow(Channel(connected))

    def _follow(self, channel: Channel) -> None:
        if len(self._unmet) + len(self._named) >= _MOST_CHANNELS:
            self._forget(min(self._all(), key=lambda one: (not one.lost, one.used_at)), "others came since")
        self._unmet.append(channel)

    def _fail(self, name: str, why: str) -> None:
        self._failed[name] = why or "it was not said why"
        while len(self._failed) > _MOST_CHANNELS:
            del self._failed[next(iter(self._failed))]

    def _forget(self, channel: Channel, why: str) -> None:
        channel.lose(why)
        if channel in self._unmet:
            self._unmet.remove(channel)
        else:
            self._named.pop(channel.name, None)

    # --- as they are heard --------------------------------------------------------------------------------------------

    def has_news(self) -> bool:
        """Tell whether something has come; the cheap question."""
        return any(channel.has_news() for channel in self._all())

    def _all(self) -> tuple[Channel, ...]:
        return (*self._unmet, *self._named.values())

    def look(self, ready: set[int]) -> None:
        """Take in what has come, and send what can be; ``ready`` are the descriptors that the poller has named."""
        if self._bell in ready:
            os.eventfd_read(self._bell)
        while not self._reached.empty():
            self._note_reached(self._reached.get())
        for channel in self._all():
            if not channel.lost:
                channel.connected.wake(channel.fileno() in ready)
                channel.hear()
                channel.push()
        for channel in tuple(self._unmet):
            self._settle(channel)
        if (now := monotonic()) >= self._tidy_at:
            self._tidy_at = now + _TIDY_SECONDS
            self._tidy()

    def _tidy(self) -> None:
        """Give up those whose hosts are silent, and let go of the memory of those that were lost."""
        for channel in self._all():
            if not channel.lost and is_silent(channel.connected):
                channel.lose("its host does not answer")
        held = 0
        for channel in reversed([one for one in self._named.values() if one.lost]):
            untaken = channel.untaken_bytes
            held += untaken
            if not untaken or held > _MOST_LOST_BYTES:
                held -= untaken
                self._forget(channel, channel.lost)
                self._fail(channel.name, channel.lost)

    def _note_reached(self, reached: _Reached) -> None:
        self._under_proof -= 1
        if reached.connected is None:
            self._fail(reached.name, reached.failure)
            return
        channel = Channel(reached.connected, reached.name)
        self._follow(channel)
        channel.send(Meet(reached.name))

    def _settle(self, channel: Channel) -> None:
        """Know a channel by its name once both sides do, unless there is one, or nobody waits for it any more."""
        if channel.is_met and (channel.name in self._named or channel.name in self._failed):
            channel.lose("there is one of that name, or was")
        elif channel.lost and channel.name:
            self._fail(channel.name, channel.lost)
        if channel.lost or channel.is_met:
            self._unmet.remove(channel)
        if not channel.lost and channel.is_met:
            self._named[channel.name] = channel

    # --- sleep --------------------------------------------------------------------------------------------------------

    def push(self) -> None:
        """Send what still waits, and have the poller tell of what comes and, for the rest, of room."""
        for channel in self._all():
            if not channel.lost:
                channel.push()
            if not channel.lost:
                self._watch(channel)

    def _watch(self, channel: Channel) -> None:
        """Have the poller tell of a channel that would be read; of another it would for ever, once that ended."""
        descriptor, poll, awaited = channel.fileno(), self._poll, channel.awaited
        assert poll is not None
        if channel.is_watched and awaited:
            poll.modify(descriptor, awaited)
        elif awaited:
            poll.register(descriptor, awaited)
        elif channel.is_watched:
            poll.unregister(descriptor)
        channel.is_watched = bool(awaited)

    def most_sleep(self, seconds: float) -> float:
        """Return how much of ``seconds`` to sleep before `look` is to be called."""
        return min([one.most_sleep(seconds) for one in self._all() if not one.lost], default=seconds)

    def doze(self) -> bool:
        """Say that this side is about to sleep; False if it should not."""
        return all(channel.doze() for channel in self._all() if not channel.lost)

    def close(self) -> None:
        """Hang up on all, once they have what they were sent. A bell that may still be rung goes with the process."""
        self._take_leave()
        for channel in self._all():
            channel.lose("the executor ends")
        if self._bell >= 0 and not self._under_proof:
            os.close(self._bell)
            self._bell = -1

    def _take_leave(self) -> None:
        """Let others read what is on its way to them: their notebooks' programs may outlive ours.

        Nobody asks here for what they have sent. It would keep us from hearing that they have hung up.
        """
        until, left = monotonic() + _LEAVE_SECONDS, [one for one in self._named.values() if not one.lost]
        for channel in left:
            channel.ask_no_more()
            channel.send(Last())
        while left and monotonic() < until:
            for channel in left:
                channel.connected.wake(True)
                channel.hear()
                channel.push()
            left = [one for one in left if not one.lost]
            if left:
                sleep(_LEAVE_LOOK_SECONDS)

    # --- what the notebook says ---------------------------------------------------------------------------------------

    def failure(self, name: str, is_coming: bool) -> str:
        """Return why there is no such channel; "" if there is one.

        Raises
        ------
        Awaits
            While that is not known of one that ``is_coming``.
        """
        found = self._named.get(name)
        if found is not None or not is_coming:
            self._due.pop(name, None)
            return "it is not there" if found is None else found.lost
        if name not in self._failed and 0 < len(name) <= MOST_NAME:
            due = self._due.setdefault(name, monotonic() + _COMING_SECONDS)
            if monotonic() < due:
                raise Awaits(lambda: name in self._named or name in self._failed or monotonic() >= due)
            self._fail(name, "the other side was not heard in time")
        self._due.pop(name, None)
        return self._failed.get(name, "no channel has that name")

    def to(self, name: str) -> Channel | None:
        """Return a channel by which another piece can be sent; None if it was lost.

        Raises
        ------
        Awaits
            While it has no room.
        """
        channel = self._named.get(name)
        if channel is None or channel.lost:
            return None
        if not channel.has_room:
            raise Awaits(lambda: channel.has_room or bool(channel.lost))
        channel.used_at = monotonic()
        return channel

    def give_up(self, name: object, number: object, reason: str) -> None:
        """Tell the other side that a piece will not come, for which it waits or will."""
        channel = self._named.get(name) if isinstance(name, str) else None
        if channel is not None and not channel.lost and isinstance(number, int):
            channel.send(NoPiece(number, reason))

    def pass_over(self, name: object, number: object) -> None:
        """Let a piece go for which nobody here waits any more."""
        channel = self._named.get(name) if isinstance(name, str) else None
        if channel is not None and isinstance(number, int):
            channel.pass_over(number)

    def taken(self, name: str, number: int) -> Frame:
        """Return a piece that has come by a channel.

        Raises
        ------
        Awaits
            While it is on its way.
        NotCopied
            If it will not come.
        """
        channel = self._named.get(name)
        if channel is None:
            raise NotCopied(_LOST.format(self._failed.get(name, "there is no way to its executor any more")))
        channel.used_at = monotonic()
        if not channel.is_there(number):
            raise Awaits(lambda: channel.is_there(number))
        try:
            return channel.take(number)
        except ConnectionLost as error:
            raise NotCopied(_LOST.format(error)) from None
