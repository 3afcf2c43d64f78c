"""The memory of this process's arrays: exact use, by pools, and limits.

Every array that the device hands out is entered here by a weak reference to the array that owns its memory, so use
falls in the instant the last view dies. There is one ledger, as there is one executor per process.
"""

from __future__ import annotations

import gc
import resource
import weakref
from collections.abc import Sequence

from gpu_backend.devices.cpu.arrays import Array, owner_of
from gpu_backend.devices.cpu.blocks import Block, rounded
from gpu_backend.devices.cpu.pools import Held, OutOfMemoryError, PoolBooks
from gpu_backend.devices.cpu.room import Room

__all__ = ["LEDGER", "Ledger", "OutOfMemoryError", "as_out_of_memory", "bound_process"]

#: Room beside the limit for libraries, compilers that a kernel starts, and short-lived copies inside NumPy.
_SLACK_BYTES = 1 << 30

#: Arrays up to this size are noted and entered later, so many at a time; the limit may be passed by the product.
_SMALL_BYTES = 4096
_MOST_NOTED = 512

_ref = weakref.ref


class _Owner(weakref.ref[Array]):
    """A weak reference to an array that owns memory, with the block it is booked under, and in which books."""

    __slots__ = ("block", "books", "key")

    block: Block
    books: PoolBooks
    key: int


class Ledger:
    """Books of the memory that live arrays hold.

    Small arrays are noted when they are made and entered later, all at once: entering one costs more than adding two
    of them. The garbage collector may end an array in the middle of an entry, so ends are queued likewise.

    Parameters
    ----------
    room
        What the machine itself still has: it bounds what is held, whatever the limits are.
    """

    def __init__(self, room: Room | None = None) -> None:
        self.room = room or Room()
        self._owners: dict[int, _Owner] = {}
        self._noted: list[tuple[weakref.ref[Array], int]] = []
        self._ended: list[_Owner] = []
        self._device = Held()
        self._ended_pools: list[PoolBooks] = []
        #: The books of the pool that arrays come from where no program has chosen another.
        self.usual = PoolBooks(self._device)
        #: Those of what comes from no pool.
        self.unpooled = PoolBooks(self._device, is_caching=False)
        self._pools = [self.usual, self.unpooled]
        self._current = self.usual
        self.limit_bytes = 0  #: the lower one of those on the pool that arrays come from and on all; 0 for none
        self._end = self._ended.append
        #: Ends the books of a pool that is gone, where the collector cannot come between.
        self.end_pool = self._ended_pools.append
        #: The books of the process's other devices: memory that is in there is not in these.
        self.others: Sequence[Ledger] = ()

    def set_quota(self, nbytes: int) -> None:
        """Set the operator's limit on all pools; 0 for none. A program's own limit on the usual one stays."""
        if self.usual.limit_bytes == self._device.quota:
            self.usual.limit_bytes = nbytes
        self._device.quota = nbytes
        self._agree_limit()

    def set_limit(self, books: PoolBooks, nbytes: int) -> None:
        """Set the limit of one pool; 0 for none. The operator's limit holds beside it."""
        books.limit_bytes = nbytes
        self._agree_limit()

    def _agree_limit(self) -> None:
        limits = (self._device.quota, self._current.limit_bytes)
        self.limit_bytes = min((limit for limit in limits if limit), default=0)

    def new_pool(self) -> PoolBooks:
        """Return the books of another pool; to be ended with `end_pool`."""
        self._settle()
        self._pools.append(PoolBooks(self._device))
        return self._pools[-1]

    def book_in(self, books: PoolBooks) -> None:
        """Enter what is held from now on in the books of this pool."""
        self._settle()
        self._current = books
        self._agree_limit()

    def settled(self, books: PoolBooks) -> PoolBooks:
        """Return ``books``, in which all is entered and ended that is to be."""
        self._settle()
        return books

    def hold(self, array: Array) -> None:
        """Enter the memory of ``array``, unless it is entered already.

        Raises
        ------
        OutOfMemoryError
            If the limit would be passed, or the machine has no more. The caller lets go of the array.
        """
        nbytes = array.nbytes
        if nbytes <= _SMALL_BYTES and array.base is None:
            noted = self._noted
            noted.append((_ref(array), nbytes))
            if len(noted) < _MOST_NOTED:
                return
            self._settle()
        else:
            self._settle()
            self._enter(array, self._current)
        if not self.room.is_known_for(0):
            self._require_room(0, nbytes)

    def hold_in(self, books: PoolBooks, array: Array) -> None:
        """Enter the memory of ``array`` in the books of one pool, as `hold` does."""
        self._settle()
        self._enter(array, books)

    def _enter(self, array: Array, books: PoolBooks) -> None:
        owner = owner_of(array)
        key = id(owner)
        if (
            key not in self._owners
            and owner.nbytes
            and not (self.others and any(one.has(owner) for one in self.others))
        ):
            block = self._allocate(rounded(owner.nbytes), books)
            entry = _Owner(owner, self._end)
            entry.block, entry.books, entry.key = block, books, key
            self._owners[key] = entry

    def has(self, array: Array) -> bool:
        """Tell whether the memory of ``array`` is in these books."""
        self._settle()
        return id(owner_of(array)) in self._owners

    def require(self, nbytes: int, books: PoolBooks | None = None) -> None:
        """Raise `OutOfMemoryError` if ``nbytes`` more cannot be held. Called before large memory is asked for.

        Parameters
        ----------
        books
            Those of the pool that they are to come from; the current one's if none are given.
        """
        books = books or self._current
        if self._device.quota or books.limit_bytes:
            self._settle()
            if books.refusal(rounded(nbytes), is_cache_for_it=True):
                gc.collect()
                self._settle()
                if books.refusal(rounded(nbytes), is_cache_for_it=True):
                    books.free_all_blocks()
                    raise books.refusal(rounded(nbytes)) or OutOfMemoryError(rounded(nbytes), books.total_bytes)
        if not self.room.is_known_for(nbytes):
            self._require_room(rounded(nbytes), nbytes)

    def _require_room(self, more: int, asked: int) -> None:
        """Raise `OutOfMemoryError`, of the bytes ``asked`` for, if the machine has not ``more`` of them."""
        if not self.room.has(self.used_bytes, more):
            gc.collect()
            if not self.room.has(self.used_bytes, more):
                self.free_all_blocks()
                raise OutOfMemoryError(rounded(asked), self._device.total, self.limit_bytes)

    @property
    def quota_bytes(self) -> int:
        """The operator's limit; 0 for none."""
        return self._device.quota

    @property
    def used_bytes(self) -> int:
        """Bytes held by live arrays, of whatever pool, in whole blocks."""
        self._settle()
        return self._device.used

    @property
    def total_bytes(self) -> int:
        """Bytes held and cached, by whatever pool."""
        self._settle()
        return self._device.total

    def free_all_blocks(self) -> None:
        """Forget cached blocks of all pools that are whole allocations."""
        self._settle()
        for books in self._pools:
            books.free_all_blocks()

    def holds(self, address: int, nbytes: int) -> bool:
        """Tell whether ``nbytes`` from ``address`` on lie in the memory of one live array."""
        self._settle()
        for owner in [*self._owners.values()]:
            array = owner()
            if array is not None:
                start = array.__array_interface__["data"][0]
                if start <= address and address + nbytes <= start + array.nbytes:
                    return True
        return False

    def _settle(self) -> None:
        self._settle_ends()
        if self._noted:
            noted = self._noted.copy()
            self._noted.clear()
            gone = {nbytes for reference, nbytes in noted if reference() is None}
            for nbytes in gone:
                if nbytes:  # such arrays came and went: what stays of them is a cached block
                    self._current.release(self._allocate(rounded(nbytes), self._current))
            for reference, _ in noted:
                array = reference()
                if array is not None:
                    self._enter(array, self._current)
            self._settle_ends()

    def _settle_ends(self) -> None:
        while self._ended:
            entry = self._ended.pop()
            del self._owners[entry.key]
            entry.books.release(entry.block)
        while self._ended_pools:
            books = self._ended_pools.pop()
            books.end()
            self._pools.remove(books)

    def _allocate(self, size: int, books: PoolBooks) -> Block:
        block = books.take(size)
        if block is None:
            if books.refusal(size):
                self._settle_ends()
                books.free_all_blocks()
            if books.refusal(size):
                gc.collect()
                self._settle()
                books.free_all_blocks()
            if (error := books.refusal(size)) is not None:
                raise error
            block = books.add(size)
        self.room.take(size)
        return block


#: The books of this process: of the device that is current, where it has several.
LEDGER = Ledger()


def as_out_of_memory(error: MemoryError) -> OutOfMemoryError:
    """Return ``error``, raised by NumPy or by us, as CuPy's error."""
    if isinstance(error, OutOfMemoryError):
        return error
    size = int(getattr(error, "_total_size", 0))
    return OutOfMemoryError(size, LEDGER.total_bytes, LEDGER.limit_bytes)


def bound_process(limit_bytes: int) -> None:
    """Let the system refuse data memory far beyond ``limit_bytes``; 0 lifts the bound.

    A backstop for what is not seen before it is allocated, such as temporary arrays inside NumPy: those fail then
    by ``MemoryError`` instead of filling the machine.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if not limit_bytes:
        resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))
        return
    with open("/proc/self/status") as file:
        held = next((int(line.split()[1]) * 1024 for line in file if line.startswith("VmData:")), 0)
    soft = held - LEDGER.used_bytes + limit_bytes + _SLACK_BYTES
    if hard != resource.RLIM_INFINITY:
        soft = min(soft, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
