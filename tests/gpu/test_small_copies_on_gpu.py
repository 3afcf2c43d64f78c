"""Small arrays to a GPU and back: each is what it was when it was uploaded, however many of them wait for the GPU."""

from __future__ import annotations

import pytest

from tests.gpu.conftest import Sides

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]

_MANY = """
import numpy as np
import cupy as cp
busy = cp.ones((4096, 4096))
rounds = []
for size in (1, 7, 1024, 8192, 8193):
    for _ in range(3):
        busy = busy @ busy * 1e-4
    host = np.empty(size)
    there = []
    for turn in range(400):
        host[:] = turn + np.arange(size)
        there.append(cp.asarray(host))
    rounds.append([float((one.get() - np.arange(size)).mean()) for one in there])
results['same'] = [one == [float(turn) for turn in range(400)] for one in rounds]
"""

_ON_A_STREAM = """
import numpy as np
import cupy as cp
busy = cp.ones((8192, 8192))
busy = busy @ busy * 1e-4
found = []
for turn in range(20):
    for _ in range(3):
        busy = busy @ busy * 1e-4
    with cp.cuda.Stream(non_blocking=True) as stream:
        there = cp.asarray(np.full(500, float(turn)))
        more = there + 1
        stream.synchronize()
        found.append(float(more.get().max()))
results['found'] = found
"""


def test_each_has_what_was_there_when_it_was_uploaded(sides: Sides) -> None:
    assert sides.remote(_MANY)["same"] == [True] * 5


def test_a_stream_that_waits_for_no_other_computes_with_what_was_uploaded_on_it(sides: Sides) -> None:
    assert sides.remote(_ON_A_STREAM)["found"] == [turn + 1.0 for turn in range(20)]
