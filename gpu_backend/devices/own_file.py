"""The path of a file that the executor wrote itself: no notebook can send one, for text from the wire is plain."""

from __future__ import annotations


class OwnFile(str):
    """A path of this process's own making."""

    __slots__ = ()
