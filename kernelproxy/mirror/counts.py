"""How many elements of a mask are true: known of masks that are known, and of those that have selected something.

A count holds as long as nobody writes the mask, as all that the mirror knows does: whoever writes the memory ends its
entry, and the count with it.
"""

from __future__ import annotations

import numpy as np

from gpu_backend.wire import values as wire
from kernelproxy.mirror.casts import Array, Unknown
from kernelproxy.mirror.entries import Counted
from kernelproxy.mirror.host_mirror import HostMirror

Mask = wire.Ref | wire.View
#: So many masks in one memory are remembered.
MOST_COUNTS = 64


def expect(mirror: HostMirror, mask: Mask) -> Counted | None:
    """Note that ``mask`` is about to select something; return where to say how much, None if that is of no use.

    To be called before the op is recorded: who writes the mask from now on ends what is returned.
    """
    handle = handle_of(mask)
    entry = mirror.known.get(handle)
    if entry is None:
        entry = Counted()
        mirror.publish(handle, entry)
    return entry if type(entry) is Counted and mirror.known.get(handle) is entry else None


def holds(mirror: HostMirror, mask: Mask, entry: Counted) -> bool:
    """Tell whether nobody has written ``mask`` since ``entry`` was made."""
    return mirror.known.get(handle_of(mask)) is entry


def note(mirror: HostMirror, mask: Mask, entry: Counted, count: int) -> None:
    """Know that ``count`` elements of ``mask`` are true, unless somebody has written it since ``entry`` was made."""
    if holds(mirror, mask, entry):
        while len(entry.counts) >= MOST_COUNTS:
            del entry.counts[next(iter(entry.counts))]
        entry.counts[mask] = count


def count(mirror: HostMirror, mask: Mask) -> int | None:
    """Return how many elements of ``mask`` are true, if that is known."""
    entry = mirror.known.get(handle_of(mask))
    if type(entry) is Counted:
        return entry.counts.get(mask)
    values = shown(mirror, mask)
    return int(np.count_nonzero(values)) if values is not None and values.dtype.kind == "b" else None


def shown(mirror: HostMirror, part: Mask) -> Array | None:
    """Return what ``part`` shows of memory that is known; None if that is not known."""
    memory = mirror.get(handle_of(part))
    if memory is None:
        return None
    try:
        return memory.part(part)
    except (Unknown, ValueError):  # what nobody can show
        return None


def handle_of(mask: Mask) -> int:
    """Return the handle of the array in whose memory ``mask`` lies."""
    return mask.handle if type(mask) is wire.Ref else mask.root  # type: ignore[union-attr]
