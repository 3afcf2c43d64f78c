"""Bookkeeping of memory in the manner of CuPy's pool: rounded blocks, cached when freed, split and merged.

NumPy frees memory at once, so the cache exists only in the books. It is kept because programs ask for it
(``used_bytes``, ``total_bytes``, ``n_free_blocks``, ``free_all_blocks``) and expect CuPy's answers.
"""

from __future__ import annotations

from bisect import bisect_left, insort

#: CuPy rounds every allocation up to this many bytes.
GRANULE = 512


def rounded(nbytes: int) -> int:
    """Return the size of the block that holds ``nbytes``."""
    return (nbytes + GRANULE - 1) // GRANULE * GRANULE


class Block:
    """A piece of memory in the books. ``before`` and ``after`` are its neighbours in the same allocation."""

    __slots__ = ("after", "before", "size")

    def __init__(self, size: int, before: Block | None = None, after: Block | None = None) -> None:
        self.size = size
        self.before = before
        self.after = after


class FreeBlocks:
    """Blocks that are free, found by best fit."""

    def __init__(self) -> None:
        self._by_size: dict[int, dict[Block, None]] = {}
        self._sizes: list[int] = []
        self.count = 0

    def __contains__(self, block: Block) -> bool:
        return block in self._by_size.get(block.size, ())

    def add(self, block: Block) -> None:
        """Take ``block`` in, merged with its free neighbours."""
        before, after = block.before, block.after
        if before is not None and before in self:
            self._remove(before)
            block = _merged(before, block)
        if after is not None and after in self:
            self._remove(after)
            block = _merged(block, after)
        same = self._by_size.get(block.size)
        if same is None:
            same = self._by_size[block.size] = {}
            insort(self._sizes, block.size)
        same[block] = None
        self.count += 1

    def take(self, size: int) -> Block | None:
        """Return a block of exactly ``size`` bytes, split off the smallest that fits, or None."""
        same = self._by_size.get(size)
        if same is None:
            place = bisect_left(self._sizes, size)
            if place == len(self._sizes):
                return None
            same = self._by_size[self._sizes[place]]
        block = next(iter(same))
        self._remove(block)
        if block.size > size:
            rest = Block(block.size - size, before=block, after=block.after)
            if rest.after is not None:
                rest.after.before = rest
            block.size, block.after = size, rest
            self.add(rest)
        return block

    def drop_whole(self) -> int:
        """Forget the blocks that are whole allocations and return how many bytes they were."""
        whole = [
            block for same in self._by_size.values() for block in same if block.before is None and block.after is None
        ]
        for block in whole:
            self._remove(block)
        return sum(block.size for block in whole)

    def _remove(self, block: Block) -> None:
        same = self._by_size[block.size]
        del same[block]
        self.count -= 1
        if not same:
            del self._by_size[block.size]
            del self._sizes[bisect_left(self._sizes, block.size)]


def _merged(left: Block, right: Block) -> Block:
    left.size += right.size
    left.after = right.after
    if left.after is not None:
        left.after.before = left
    return left
