"""The messages by which processes of one user find each other, to compute together: the gateway is where they meet."""

from __future__ import annotations

import msgspec

#: Most ranks of a group. An executor keeps channels to so many others, and a key may ask so much at a time.
MOST_RANKS = 16
#: Longest name of a group, and of an attempt to join it.
MOST_GROUP_NAME, MOST_ATTEMPT = 256, 64


class JoinGroup(msgspec.Struct, frozen=True, array_like=True, tag="join_group"):
    """Notebook to gateway: my ``session`` is ``rank`` of ``size`` in the group ``name``. Answered by ``Group``.

    Asked again and again until nobody is missing: whoever is not heard for some seconds has left. ``attempt`` is a
    random name that stays the same meanwhile: another one makes another group of that name. Or answered by ``Denied``,
    if others say otherwise. With ``leaves`` this attempt is over: nobody waits for it or counts on it. Answered by
    ``Done``.
    """

    request: int
    session: str
    name: str
    size: int
    rank: int
    attempt: str
    leaves: bool = False


class Group(msgspec.Struct, frozen=True, array_like=True, tag="group"):
    """Who is ``missing``, by rank; or, where nobody is, the ``channels`` to each rank, "" to the asker's own.

    The gateway has told the nodes to open them; ``.channel`` tells what came of each.
    """

    request: int
    missing: tuple[int, ...] = ()
    channels: tuple[str, ...] = ()
