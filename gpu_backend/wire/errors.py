"""The exception tree of the pool, and how an exception crosses the wire.

::

    WorkbenchError
    ├── WireError                 bytes that are not a message of ours
    │   ├── MalformedMessage
    │   ├── ForeignVersion
    │   └── OversizedMessage
    ├── PoolError                 the pool cannot or will not serve
    │   ├── PoolUnreachable
    │   │   └── AnswerOverdue     the request was taken: the pool is busy, or was restarted in the middle
    │   ├── NotAuthorized         not with this key: the message says why
    │   │   ├── KeyRefused        the pool does not know the key, or it was revoked there
    │   │   └── ForeignServer     what answers is not the pool that was meant
    │   ├── PoolRefusal           admission said no: the message says why and what to do
    │   │   ├── ExecutorStarting  not yet: an executor is on its way; asking again helps
    │   │   ├── TooManyAtOnce     so much of this user's waits already; asking again helps
    │   │   └── PoolFull          no device has room: one can wait for a place
    │   └── SessionLost           the executor is gone; its arrays with it
    ├── ProtocolError             a peer broke the rules (credits, order, epoch)
    ├── OpCancelled               an array is missing: its op was cancelled before it ran
    ├── NotCopied                 what was to come from another device's executor never came
    └── OpFailed                  an op raised something that has no class here
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from gpu_backend.wire.words import printable

#: Most characters of what was given that a refusal repeats.
_MOST_REPEATED = 60
#: Most characters of an error's text that quotes what a peer has sent.
_MOST_QUOTING = 200


def quoted(given: object) -> str:
    """Return ``given`` as a refusal repeats it: cut if it is long, and a text between quotes."""
    text = str(given)
    shown = repr(text if len(text) <= _MOST_REPEATED else f"{text[: _MOST_REPEATED - 1]}…")
    return shown if isinstance(given, str) else shown.strip("'")


class WorkbenchError(Exception):
    """Base of every error that the workbench itself raises."""


class WireError(WorkbenchError):
    """Bytes that are not a message of ours."""


class MalformedMessage(WireError):
    """The bytes do not decode as any message of this protocol version.

    The text may quote them: it is cut, and has nothing in it that a terminal or the reader of a log would obey.
    """

    def __init__(self, text: str) -> None:
        super().__init__(printable(text, _MOST_QUOTING))


class ForeignVersion(WireError):
    """The peer speaks another version of the protocol, or another protocol."""


class OversizedMessage(WireError):
    """A message is larger than the receiver accepts."""


class PoolError(WorkbenchError):
    """The pool cannot or will not serve."""


class PoolUnreachable(PoolError):
    """Nobody answers at the pool's address, or something that does not speak as a pool does."""


class AnswerOverdue(PoolUnreachable):
    """The pool took a request and did not answer it in time: it is busy, or was restarted in the middle."""


class NotAuthorized(PoolError):
    """The key that was shown is not known to the pool, or not allowed here."""


class KeyRefused(NotAuthorized):
    """The pool does not know the key that was shown, or it was revoked there."""


class ForeignServer(NotAuthorized):
    """What answers at the pool's address is not the pool whose key we hold. Ours was not looked at."""


class PoolRefusal(PoolError):
    """Admission said no. The message says why and what to do."""


class ExecutorStarting(PoolRefusal):
    """No executor was ready in time; one is on its way. Asking again helps."""


class TooManyAtOnce(PoolRefusal):
    """So many requests of this user are waiting already. Asking again helps, a little later."""


class NoDevice(PoolRefusal):
    """No device of the pool serves what was asked for, however long one waited."""


class PoolFull(PoolRefusal):
    """No device of the pool has room. One can wait for a place."""


class SessionLost(PoolError):
    """The executor of the session has ended, and its arrays with it."""


class ProtocolError(WorkbenchError):
    """A peer broke the rules of the protocol (credits, order, epoch)."""


class OpFailed(WorkbenchError):
    """A remote op raised an exception that has no class on this side; the message names it."""


class OpCancelled(WorkbenchError):
    """The op that should have made this object was cancelled by an interrupt before it started."""


class NotCopied(WorkbenchError):
    """What was to be copied from a device of another session has not come; the array it was for is half written."""


class RefusalCode(StrEnum):
    """Why a message or a request was not accepted."""

    MALFORMED = "malformed"
    FOREIGN_VERSION = "foreign_version"
    OVERSIZED = "oversized"
    NOT_GREETED = "not_greeted"
    WRONG_SESSION = "wrong_session"
    IN_USE = "in_use"
    STALE_EPOCH = "stale_epoch"
    OVER_CREDIT = "over_credit"
    OUT_OF_ORDER = "out_of_order"
    NOT_AUTHORIZED = "not_authorized"
    POOL_FULL = "pool_full"
    QUOTA = "quota"
    NO_DEVICE = "no_device"
    UNKNOWN_SESSION = "unknown_session"
    LAUNCH_FAILED = "launch_failed"
    STARTING = "starting"
    STOPPING = "stopping"
    ENDED = "ended"


class WarningRecord(msgspec.Struct, frozen=True, array_like=True):
    """A Python warning on the wire; ``kind`` is the qualified public name of its category."""

    kind: str
    message: str


class ErrorRecord(msgspec.Struct, frozen=True, array_like=True):
    """An exception on the wire.

    ``kind`` is the qualified public name of its class ("builtins.ValueError", "cupy.cuda.memory.OutOfMemoryError").
    ``caused_by`` is the number of the op whose failure made this one impossible, or -1. ``note`` is what the pool has
    to add to the library's own words.
    """

    kind: str
    message: str
    traceback: str = ""
    caused_by: int = -1
    args: tuple[int | str | float | None, ...] = ()
    note: str = ""
