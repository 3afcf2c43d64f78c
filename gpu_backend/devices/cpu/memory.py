"""The memory of this process's arrays: exact use, a limit, and CuPy's ``OutOfMemoryError``.

Every array that the device hands out is entered here by a weak reference to the array that owns its memory, so use
falls in the instant the last view dies. There is one ledger, as there is one executor per process.
"""

from __future__ import annotations

import gc
import resource
import weakref
from collections.abc import Sequence

from gpu_backend.devices.cpu.arrays import Array, owner_of
from gpu_backend.devices.cpu.blocks import Block, FreeBlocks, rounded
from gpu_backend.devices.cpu.room import Room

#: Room beside the limit for libraries, compilers that a kernel starts, and short-lived copies inside NumPy.
_SLACK_BYTES = 1 << 30

#: Arrays up to this size are noted and entered later, so many at a time; the limit may be passed by the product.
_SMALL_BYTES = 4096
_MOST_NOTED = 512

_ref = weakref.ref


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


class _Owner(weakref.ref[Array]):
    """A weak reference to an array that owns memory, with the block it is booked under."""

    __slots__ = ("block", "key")

    block: Block
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
        self._free = FreeBlocks()
        self._used = 0
        self._total = 0
        self.limit_bytes = 0  #: most that ``total_bytes`` may be; 0 for no limit
        self._quota = 0
        self._own_limit = 0
        self._end = self._ended.append
        #: The books of the process's other devices: memory that is in there is not in these.
        self.others: Sequence[Ledger] = ()

    def set_quota(self, nbytes: int) -> None:
        """Set the operator's limit; 0 for none."""
        self._quota = nbytes
        self._agree_limit()

    def set_own_limit(self, nbytes: int) -> None:
        """Set the limit the program set itself; 0 for none. The operator's limit holds beside it."""
        self._own_limit = nbytes
        self._agree_limit()

    def _agree_limit(self) -> None:
        self.limit_bytes = min((limit for limit in (self._quota, self._own_limit) if limit), default=0)

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
            self._enter(array)
        if not self.room.is_known_for(0):
            self._require_room(0, nbytes)

    def _enter(self, array: Array) -> None:
        owner = owner_of(array)
        key = id(owner)
        if (
            key not in self._owners
            and owner.nbytes
            and not (self.others and any(one.has(owner) for one in self.others))
        ):
            block = self._allocate(rounded(owner.nbytes))
            entry = _Owner(owner, self._end)
            entry.block, entry.key = block, key
            self._owners[key] = entry

    def has(self, array: Array) -> bool:
        """Tell whether the memory of ``array`` is in these books."""
        self._settle()
        return id(owner_of(array)) in self._owners

    def require(self, nbytes: int) -> None:
        """Raise `OutOfMemoryError` if ``nbytes`` more cannot be held. Called before large memory is asked for."""
        limit = self.limit_bytes
        if limit and self.used_bytes + rounded(nbytes) > limit:
            gc.collect()
            if self.used_bytes + rounded(nbytes) > limit:
                self.free_all_blocks()
                raise OutOfMemoryError(rounded(nbytes), self._total, limit)
        if not self.room.is_known_for(nbytes):
            self._require_room(rounded(nbytes), nbytes)

    def _require_room(self, more: int, asked: int) -> None:
        """Raise `OutOfMemoryError`, of the bytes ``asked`` for, if the machine has not ``more`` of them."""
        if not self.room.has(self.used_bytes, more):
            gc.collect()
            if not self.room.has(self.used_bytes, more):
                self.free_all_blocks()
                raise OutOfMemoryError(rounded(asked), self._total, self.limit_bytes)

    @property
    def used_bytes(self) -> int:
        """Bytes held by live arrays, in whole blocks."""
        self._settle()
        return self._used

    @property
    def total_bytes(self) -> int:
        """Bytes held and cached."""
        self._settle()
        return self._total

    @property
    def n_free_blocks(self) -> int:
        """How many blocks are cached."""
        self._settle()
        return self._free.count

    def free_all_blocks(self) -> None:
        """Forget cached blocks that are whole allocations."""
        self._settle()
        self._total -= self._free.drop_whole()

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

    def allocate(self, nbytes: int) -> Block:
        """Book ``nbytes`` that are not an array's, such as a raw allocation. Give back with `release`."""
        self._settle()
        return self._allocate(rounded(nbytes))

    def release(self, block: Block) -> None:
        """Give back what `allocate` returned."""
        self._used -= block.size
        self._free.add(block)

    def _settle(self) -> None:
        self._settle_ends()
        if self._noted:
            noted = self._noted.copy()
            self._noted.clear()
            gone = {nbytes for reference, nbytes in noted if reference() is None}
            for nbytes in gone:
                if nbytes:  # such arrays came and went: what stays of them is a cached block
                    self.release(self._allocate(rounded(nbytes)))
            for reference, _ in noted:
                array = reference()
                if array is not None:
                    self._enter(array)
            self._settle_ends()

    def _settle_ends(self) -> None:
        while self._ended:
            entry = self._ended.pop()
            del self._owners[entry.key]
            self.release(entry.block)

    def _allocate(self, size: int) -> Block:
        block = self._free.take(size) if self._free.count else None
        if block is None:
            limit = self.limit_bytes
            if limit and self._total + size > limit:
                self.free_all_blocks()
                if self._total + size > limit:
                    gc.collect()
                    self.free_all_blocks()
                if self._total + size > limit:
                    raise OutOfMemoryError(size, self._total, limit)
            block = Block(size)
            self._total += size
        self._used += size
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
