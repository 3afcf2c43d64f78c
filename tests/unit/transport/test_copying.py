"""Copying by several processors: every byte, whatever the length, and nothing held when it is done."""

from __future__ import annotations

import mmap
import re
import subprocess
import sys
import threading
import weakref
from pathlib import Path

import numpy as np
import pytest

from gpu_backend.transport import copying
from gpu_backend.transport.copying import address_of, copy, fault_in


@pytest.fixture(params=[False, True], ids=["alone", "with others"])
def has_others(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    monkeypatch.setattr(copying, "has_spare", lambda: request.param)
    return bool(request.param)


@pytest.mark.parametrize("size", [1, 4096, 1 << 20, (1 << 20) + 1, (4 << 20) - 1, 4 << 20, 5_000_000])
@pytest.mark.usefixtures("has_others")
def test_every_byte_is_copied_and_none_beside_them(size: int) -> None:
    source = np.random.default_rng(size).integers(0, 256, size + 2, np.uint8)
    into = np.full(size + 2, 77, np.uint8)
    copy(into[1:-1], source[1:-1])
    np.testing.assert_array_equal(into[1:-1], source[1:-1])
    assert (into[0], into[-1]) == (77, 77)


@pytest.mark.usefixtures("has_others")
def test_nobody_looks_into_what_was_copied_any_more() -> None:
    """Blocks are lent again when the last look into them is gone."""
    source, into = np.zeros(4 << 20, np.uint8), np.ones(4 << 20, np.uint8)
    copy(into, source)
    gone = [weakref.ref(one) for one in (source, into)]
    del source, into
    assert [one() for one in gone] == [None, None]


MEGABYTE = 1 << 20


def resident_bytes(address: int) -> int:
    """Return how much there is of the memory that was mapped at ``address``."""
    _, _, mapping = Path("/proc/self/smaps").read_text().partition(f"{address:08x}-")
    found = re.search(r"^Rss: *([0-9]+) kB$", mapping, re.MULTILINE)
    assert found is not None
    return int(found[1]) << 10


@pytest.mark.parametrize(("megabytes", "most"), [(40, 40), (33, 33), (31, 0)])
def test_pages_are_there_before_anything_is_copied(has_others: bool, megabytes: int, most: int) -> None:
    """What is less is mostly not new, and one processor alone has no other to keep from clearing the same."""
    memory = np.frombuffer(mmap.mmap(-1, megabytes * MEGABYTE), np.uint8)
    assert resident_bytes(address_of(memory)) == 0
    fault_in(memory)
    assert resident_bytes(address_of(memory)) == (most * MEGABYTE if has_others else 0)


def test_an_address_is_where_memory_begins() -> None:
    memory = np.arange(9, dtype=np.uint8)
    assert address_of(memory[3:]) == address_of(memory) + 3 == memory.ctypes.data + 3


def test_an_interrupt_is_heard_when_nobody_copies_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """The memory is the user's own again then."""
    monkeypatch.setattr(copying, "has_spare", lambda: True)
    into, source = np.zeros(4 * MEGABYTE, np.uint8), np.ones(4 * MEGABYTE, np.uint8)
    help_, jobs, may_help, interrupts = copying._Job.help, copying._jobs(), threading.Event(), 3

    def late(job: copying._Job) -> None:
        assert may_help.wait(90)
        help_(job)

    class Interrupted:
        """Hands a job to a helper, and is struck then, some times."""

        def put(self, job: copying._Job) -> None:
            nonlocal interrupts
            jobs.put(job)
            if interrupts:
                interrupts -= 1
                raise KeyboardInterrupt
            may_help.set()

    monkeypatch.setattr(copying._Job, "help", late)
    monkeypatch.setattr(copying, "_jobs", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        copy(into, source)
    assert interrupts == 0
    np.testing.assert_array_equal(into, source)


_FORKING = """
import os
import numpy as np
from gpu_backend.transport import copying
copying.has_spare = lambda: True
source, into = np.arange(4 << 20).astype(np.uint8), np.zeros(4 << 20, np.uint8)
copying.copy(into, source)
child = os.fork()
into[:] = 0
copying.copy(into, source)
assert np.array_equal(into, source)
if child:
    assert os.waitpid(child, 0)[1] == 0
"""


def test_a_process_that_was_forked_copies_too() -> None:
    """It has none of the threads that the other had. In a process of its own: one with threads is warned of forks."""
    subprocess.run([sys.executable, "-W", "ignore", "-c", _FORKING], check=True, timeout=200)
