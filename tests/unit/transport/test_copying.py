"""Copying by several processors: every byte, whatever the length, and nothing held when it is done."""

from __future__ import annotations

import mmap
import re
import subprocess
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_backend.transport import copying
from gpu_backend.transport.copying import Bytes, address_of, copy, fault_in


@pytest.fixture(params=[False, True], ids=["alone", "with others"])
def has_others(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    monkeypatch.setattr(copying, "has_spare", lambda: request.param)
    return bool(request.param)


@pytest.fixture(scope="module")
def compiled() -> None:
    if copying._compiled is None:
        pytest.skip("nothing is compiled here")


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
    assert resident_bytes(address_of(memory)) == (most * MEGABYTE if has_others and copying._compiled else 0)


def test_an_address_is_where_memory_begins() -> None:
    memory = np.arange(9, dtype=np.uint8)
    assert address_of(memory[3:]) == address_of(memory) + 3 == memory.ctypes.data + 3


@pytest.mark.usefixtures("compiled")
def test_who_copies_while_others_are_helped_copies_alone() -> None:
    """Each gets what is theirs, however many copy at a time."""
    sources = [np.random.default_rng(one).integers(0, 256, (2 << 20) + one, np.uint8) for one in range(6)]

    def copied(source: Bytes) -> bool:
        intos = [np.zeros_like(source) for _ in range(20)]
        for into in intos:
            copying._compiled.copy(into, source, 4)
        return all(np.array_equal(into, source) for into in intos)

    with ThreadPoolExecutor(len(sources)) as threads:
        assert all(threads.map(copied, sources))


@pytest.mark.usefixtures("compiled")
@given(
    st.integers(0, 3 << 20),
    st.integers(-1, 12),
    st.integers(0, 200),
)
@settings(max_examples=60, deadline=None)
def test_every_byte_by_any_number_of_processors(size: int, workers: int, offset: int) -> None:
    source = np.random.default_rng(size).integers(0, 256, size + offset, np.uint8)[offset:]
    into = np.full(size + 2, 77, np.uint8)
    copying._compiled.copy(into[1:-1], source, workers)
    assert np.array_equal(into[1:-1], source)
    assert (into[0], into[-1]) == (77, 77)


@pytest.mark.usefixtures("compiled")
def test_what_does_not_fit_is_refused_and_nothing_is_copied() -> None:
    into = np.zeros(7, np.uint8)
    with pytest.raises(ValueError, match="as long as where it goes"):
        copying._compiled.copy(into, np.ones(8, np.uint8), 4)
    into.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        copying._compiled.copy(into, np.ones(7, np.uint8), 4)
    assert not into.any()


def test_one_copies_where_nothing_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copying, "has_spare", lambda: True)
    monkeypatch.setattr(copying, "_compiled", None)
    into, source = np.zeros(4 * MEGABYTE, np.uint8), np.ones(4 * MEGABYTE, np.uint8)
    copy(into, source)
    assert into.all()
    fault_in(into)
    assert into.all()


_FORKING = """
import os
import threading
import numpy as np
from gpu_backend.transport import copying
copying.has_spare = lambda: True
source, into = np.arange(4 << 20).astype(np.uint8), np.zeros(4 << 20, np.uint8)
copying.copy(into, source)
others = np.zeros(4 << 20, np.uint8)
is_over = threading.Event()
def copy_on():
    while not is_over.is_set():
        copying.copy(others, source)
threading.Thread(target=copy_on, daemon=True).start()
for turn in range(20):
    child = os.fork()
    if not child or not turn:
        into[:] = 0
        copying.copy(into, source)
        assert np.array_equal(into, source)
    if not child:
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
is_over.set()
"""


def test_a_process_that_was_forked_copies_too() -> None:
    """It has none of the threads that the other had. In a process of its own: one with threads is warned of forks."""
    subprocess.run([sys.executable, "-W", "ignore", "-c", _FORKING], check=True, timeout=200)
