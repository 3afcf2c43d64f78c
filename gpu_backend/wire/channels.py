"""The messages by which two executors of one user come to have a channel, and those that pass on it.

The notebook makes up a name for it, which nobody can guess, and asks its gateway. The gateway tells the agent of one
of them, which opens a connection to the other and hands it over. Who comes by it proves what follows from the other's
ticket and from nothing else, and says the name.
"""

from __future__ import annotations

import msgspec

from gpu_backend.wire.secrecy import HoldsSecret

#: The verbs by which a notebook waits for a channel, has a piece sent by it, and has it put into an array.
CHANNEL, SEND, RECEIVE = ".channel", ".send", ".receive"
#: Longest name of a channel.
MOST_NAME = 64


# --- notebook -> gateway -> agent -> executor -------------------------------------------------------------------------


class OpenChannel(msgspec.Struct, frozen=True, array_like=True, tag="open_channel"):
    """Notebook to gateway: have the executor of my ``session`` reach that of my session ``to``. Answered by ``Done``.

    Or by ``Denied``, if one of them has no executor, or is not the asker's own. ``channel`` is its name.
    """

    request: int
    session: str
    to: str
    channel: str


class DialChannel(HoldsSecret, frozen=True, array_like=True, tag="dial_channel"):
    """Gateway to agent: open a connection to one of the ``endpoints`` for your executor of this session and epoch.

    Whoever is behind it is known by its ``certificate``; ``secret`` is proved to it. ``channel`` as in `OpenChannel`.
    """

    session: str
    epoch: int
    channel: str
    endpoints: tuple[str, ...]
    secret: str
    certificate: str


class TakeChannel(HoldsSecret, frozen=True, array_like=True, tag="take_channel"):
    """Agent to executor: a connection for the ``channel``, whose descriptor comes with it.

    Without a descriptor there is none, ``failure`` says why.
    """

    channel: str
    secret: str = ""
    certificate: str = ""
    failure: str = ""


# --- executor <-> executor --------------------------------------------------------------------------------------------


class Meet(msgspec.Struct, frozen=True, array_like=True, tag="meet"):
    """Who came: this is the ``channel`` of that name. Answered by ``Met``."""

    channel: str


class Met(msgspec.Struct, frozen=True, array_like=True, tag="met"):
    """It is known here now."""


class Piece(msgspec.Struct, frozen=True, array_like=True, tag="piece"):
    """Bytes of an array, in the one buffer. The notebook counts pieces, and says by ``number`` what becomes of each."""

    number: int


class NoPiece(msgspec.Struct, frozen=True, array_like=True, tag="no_piece"):
    """The piece of that ``number`` will not come; ``reason`` says why in words."""

    number: int
    reason: str


class Last(msgspec.Struct, frozen=True, array_like=True, tag="last"):
    """All that I send has come before this: I am about to end, and wait for you to hang up."""


OnChannel = Meet | Met | Piece | NoPiece | Last
