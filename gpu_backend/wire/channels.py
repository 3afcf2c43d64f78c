"""The messages by which two executors of one user come to have a channel, and those that pass on it.

The notebook asks its gateway for it, the gateway tells the agent of one of them, which opens a connection to the other
and hands it over. Who comes by it proves what follows from the other's ticket and from nothing else.
"""

from __future__ import annotations

import msgspec

from gpu_backend.wire.secrecy import HoldsSecret

#: The verbs by which a notebook waits for a channel, has a piece sent by it, and has it put into an array.
CHANNEL, SEND, RECEIVE = ".channel", ".send", ".receive"


def channel_name(session: str, epoch: int) -> str:
    """Return by what the executor of this session and epoch is known to those that it has channels to."""
    return f"{session}.{epoch}"


# --- notebook -> gateway -> agent -> executor -------------------------------------------------------------------------


class OpenChannel(msgspec.Struct, frozen=True, array_like=True, tag="open_channel"):
    """Notebook to gateway: have the executor of my ``session`` reach that of my session ``to``. Answered by ``Done``.

    Or by ``Denied``, if one of them has no executor, or is not the asker's own.
    """

    request: int
    session: str
    to: str


class DialChannel(HoldsSecret, frozen=True, array_like=True, tag="dial_channel"):
    """Gateway to agent: open a connection to one of the ``endpoints`` for your executor of this session and epoch.

    Behind it is the executor known by ``peer``, and by its ``certificate``; ``secret`` is proved to it.
    """

    session: str
    epoch: int
    peer: str
    endpoints: tuple[str, ...]
    secret: str
    certificate: str


class TakeChannel(HoldsSecret, frozen=True, array_like=True, tag="take_channel"):
    """Agent to executor: a connection to the one known by ``peer``, whose descriptor comes with it; you are ``own``.

    Without a descriptor there is none, ``failure`` says why.
    """

    own: str
    peer: str
    secret: str = ""
    certificate: str = ""
    failure: str = ""


# --- executor <-> executor --------------------------------------------------------------------------------------------


class Meet(msgspec.Struct, frozen=True, array_like=True, tag="meet"):
    """Who came: I am the executor known by ``name``. Answered by ``Met``."""

    name: str


class Met(msgspec.Struct, frozen=True, array_like=True, tag="met"):
    """You are known here now."""


class Piece(msgspec.Struct, frozen=True, array_like=True, tag="piece"):
    """Bytes of an array, in the one buffer. The notebook counts pieces, and says by ``number`` what becomes of each."""

    number: int


class NoPiece(msgspec.Struct, frozen=True, array_like=True, tag="no_piece"):
    """The piece of that ``number`` will not come; ``reason`` says why in words."""

    number: int
    reason: str


OnChannel = Meet | Met | Piece | NoPiece
