"""Contents that an executor keeps for its session, so that they need not be sent again: named by their SHA-256.

The notebook alone says, op by op and in the stream's order, what is kept and what goes for it. So it knows at every
moment what is there, without asking, and where it cannot know that any more it begins anew.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from gpu_backend.wire.errors import ProtocolError

#: Contents from so many bytes on are named, so as not to be sent again.
LEAST_BYTES = 64 << 10
DIGEST_BYTES = 32

#: The verb that has an executor keep contents, and the one that writes what it keeps into an array.
KEEP, WRITE_KEPT = ".keep", ".write_kept"

_MISSING = (
    "The executor does not keep contents that the notebook took for kept, so nothing was written. "
    "Run the cell again: they are sent anew."
)
_ALTERED = (
    "Contents that the executor keeps are not those by whose digest the notebook named them, so nothing was written. "
    "Run the cell again: they are sent anew. Does another thread change an array while it is uploaded?"
)


def digest_of(content: bytes) -> bytes:
    """Return the name of ``content``."""
    return hashlib.sha256(content).digest()


class KeptContents:
    """What the executor keeps, in host memory: at most ``most_bytes``, of this session only."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._contents: dict[bytes, bytes] = {}
        self._unproved: set[bytes] = set()
        self.bytes = 0

    def keep(self, digest: bytes, content: bytes, gone: Sequence[bytes] | None) -> None:
        """Keep ``content`` as ``digest``, in place of what is ``gone``: those, or, for None, all there is.

        Raises
        ------
        ProtocolError
            If that would be more than is kept here, or is too little to be worth it: so their number is bounded too.
        """
        if len(digest) != DIGEST_BYTES or len(content) < LEAST_BYTES:
            raise ProtocolError(f"Contents of {len(content)} bytes are not kept by a name of {len(digest)} bytes.")
        for one in (*self._contents,) if gone is None else (*gone, digest):
            self._let_go(one)
        if self.bytes + len(content) > self._most_bytes:
            raise ProtocolError(f"{self._most_bytes} bytes are kept here, and {len(content)} more do not fit.")
        self._contents[digest] = content
        self._unproved.add(digest)
        self.bytes += len(content)

    def get(self, digest: bytes) -> bytes:
        """Return what is kept as ``digest``: it is looked at when it is first asked for, and has that digest.

        Raises
        ------
        ProtocolError
            If nothing is, or something else.
        """
        content = self._contents.get(digest)
        if content is None:
            raise ProtocolError(_MISSING)
        if digest in self._unproved:
            if digest_of(content) != digest:
                self._let_go(digest)
                raise ProtocolError(_ALTERED)
            self._unproved.discard(digest)
        return content

    def clear(self) -> None:
        """Keep nothing."""
        self._contents.clear()
        self._unproved.clear()
        self.bytes = 0

    def _let_go(self, digest: bytes) -> None:
        self.bytes -= len(self._contents.pop(digest, b""))
        self._unproved.discard(digest)


class KnownContents:
    """What the notebook knows to be kept when the op that it records next is run. All under the recorder's lock."""

    def __init__(self) -> None:
        self._sizes: OrderedDict[bytes, int] = OrderedDict()  # what was not used for longest comes first
        self.bytes = 0
        # Both are one object while it is sure what is kept: nothing is before the first op, which begins anew.
        self._valid: object = object()
        self._found: object | None = None

    def forget(self) -> None:
        """Take nothing for kept from now on: an op that keeps something may not have run. One step, by any thread."""
        self._valid = object()

    def use(self, digest: bytes) -> bool:
        """Tell whether ``digest`` is kept; then it stays longer."""
        if self._found is not self._valid or digest not in self._sizes:
            return False
        self._sizes.move_to_end(digest)
        return True

    @contextmanager
    def keeping(self, digest: bytes, size: int, most_bytes: int) -> Iterator[Sequence[bytes] | None]:
        """Return a context in which the op is recorded that has ``digest`` kept, which is not kept yet.

        Yields what goes for it, as `KeptContents.keep` takes it. Whatever is raised meanwhile has all forgotten.
        """
        valid, found, self._found = self._valid, self._found, None
        if found is valid:
            yield self._make_room(most_bytes - size)
        else:
            self._sizes.clear()
            self.bytes = 0
            yield None
        self._sizes[digest] = size
        self.bytes += size
        self._found = valid

    def _make_room(self, most_bytes: int) -> Sequence[bytes]:
        gone = []
        while self._sizes and self.bytes > most_bytes:
            digest, size = self._sizes.popitem(last=False)
            self.bytes -= size
            gone.append(digest)
        return gone
