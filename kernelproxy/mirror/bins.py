"""How many bins an array of integers needs: known of arrays that are known, and of those that were counted before.

As of masks (`counts`), it holds as long as nobody writes the array.
"""

from __future__ import annotations

from gpu_backend.wire import values as wire
from kernelproxy.mirror import counts
from kernelproxy.mirror.entries import Bins, Counted
from kernelproxy.mirror.host_mirror import HostMirror

Numbers = wire.Ref | wire.View


def length(mirror: HostMirror, numbers: Numbers, minlength: int) -> int | None:
    """Return how many bins ``numbers`` are counted in, none of them negative, if that is known; ``minlength`` at least.

    They are integers, one at least.
    """
    known = _known(mirror, numbers)
    if known is None:
        return None
    if known.least == known.most:
        return max(known.most, minlength)
    return minlength if minlength >= known.most else None


def note(mirror: HostMirror, numbers: Numbers, entry: Counted, found: int, minlength: int) -> None:
    """Know that ``numbers`` were counted in ``found`` bins, unless somebody has written them since `counts.expect`."""
    if not counts.holds(mirror, numbers, entry):
        return
    before = entry.bins.get(numbers, Bins(0, found))
    while len(entry.bins) >= counts.MOST_COUNTS and numbers not in entry.bins:
        del entry.bins[next(iter(entry.bins))]
    entry.bins[numbers] = Bins(found if found > minlength else before.least, min(found, before.most))


def _known(mirror: HostMirror, numbers: Numbers) -> Bins | None:
    entry = mirror.known.get(counts.handle_of(numbers))
    if type(entry) is Counted:
        return entry.bins.get(numbers)
    values = counts.shown(mirror, numbers)
    if values is None or values.dtype.kind not in "iu" or not values.size or values.min() < 0:
        return None
    needed = int(values.max()) + 1
    return Bins(needed, needed)
