"""Copying by several processors: every byte, whatever the length, and nothing held when it is done."""

from __future__ import annotations

import os
import weakref

import numpy as np
import pytest

from gpu_backend.transport import copying
from gpu_backend.transport.copying import copy


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


def test_a_process_that_was_forked_copies_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has none of the threads that the other had."""
    monkeypatch.setattr(copying, "has_spare", lambda: True)
    source, into = np.arange(4 << 20, dtype=np.uint8), np.zeros(4 << 20, np.uint8)
    copy(into, source)
    child = os.fork()
    if child == 0:
        into[:] = 0
        copy(into, source)
        os._exit(0 if np.array_equal(into, source) else 1)
    assert os.waitpid(child, 0)[1] == 0
