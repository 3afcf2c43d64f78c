"""The books of pools of memory: what each pool holds, has cached and may hold, of what one device holds in all."""

from __future__ import annotations

from gpu_backend.devices.cpu.blocks import Block, FreeBlocks


class OutOfMemoryError(MemoryError):
    """An array did not fit. Words and fields as in ``cupy.cuda.memory.OutOfMemoryError``.

    Parameters
    ----------
    size
        Bytes that were asked for.
    total
        Bytes held so far.
    limit
        The limit in bytes; 0 for none. It may be the machine that had no more.
    """

    public_name = "cupy.cuda.memory.OutOfMemoryError"

    def __init__(self, size: int, total: int, limit: int = 0) -> None:
        text = f"Out of memory allocating {size:,} bytes (allocated so far: {total:,} bytes"
        super().__init__(f"{text}, limit set to: {limit:,} bytes)." if limit else f"{text}).")
        self.size, self.total, self.limit = size, total, limit


class Held:
    """What all pools of one device hold together, and the operator's limit on it; 0 for none."""

    __slots__ = ("quota", "total", "used")

    def __init__(self) -> None:
        self.used = self.total = self.quota = 0


class PoolBooks:
    """The books of one pool on one device.

    Parameters
    ----------
    device
        What all pools of the device hold.
    is_caching
        Whether what is given back stays with the pool.
    """

    def __init__(self, device: Held, is_caching: bool = True) -> None:
        self._device = device
        self._is_caching = is_caching
        self._free = FreeBlocks()
        self.used_bytes = 0
        self.total_bytes = 0  #: held and cached
        self.limit_bytes = 0  #: most that ``total_bytes`` may be; 0 for no limit

    @property
    def n_free_blocks(self) -> int:
        """How many blocks are cached."""
        return self._free.count

    def take(self, size: int) -> Block | None:
        """Return a cached block of ``size`` bytes, now in use; None if there is none."""
        block = self._free.take(size) if self._free.count else None
        if block is not None:
            self._use(size)
        return block

    def add(self, size: int) -> Block:
        """Return a new block, in use, of memory that was nobody's."""
        self.total_bytes += size
        self._device.total += size
        self._use(size)
        return Block(size)

    def _use(self, size: int) -> None:
        self.used_bytes += size
        self._device.used += size

    def release(self, block: Block) -> None:
        """Give ``block`` back."""
        self._use(-block.size)
        self._free.add(block)
        if not self._is_caching:
            self.free_all_blocks()

    def free_all_blocks(self) -> None:
        """Forget cached blocks that are whole allocations."""
        freed = self._free.drop_whole()
        self.total_bytes -= freed
        self._device.total -= freed

    def end(self) -> None:
        """Cache nothing any more: the pool is gone, and what is left of it ends with the arrays that lie there."""
        self._is_caching = False
        self.free_all_blocks()

    def refusal(self, size: int, is_cache_for_it: bool = False) -> OutOfMemoryError | None:
        """Return the error that says which limit ``size`` bytes more would pass, None if they pass none.

        Parameters
        ----------
        is_cache_for_it
            Whether what the pool has cached would make room for them.
        """
        cached = self.total_bytes - self.used_bytes if is_cache_for_it else 0
        if self.limit_bytes and self.total_bytes - cached + size > self.limit_bytes:
            return OutOfMemoryError(size, self.total_bytes, self.limit_bytes)
        device = self._device
        if device.quota and device.total - cached + size > device.quota:
            return OutOfMemoryError(size, device.total, device.quota)
        return None
