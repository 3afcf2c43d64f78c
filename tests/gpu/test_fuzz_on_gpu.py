"""Random programs on a GPU give CuPy's own bits, with all optimisations and with all but one of them.

Longer, and in many processes: ``python -m tests.fuzz --seconds 600``.
"""

from __future__ import annotations

from typing import Any

import pytest

from gpu_backend.executor.config import PASSES
from tests.fuzz.hunting import Counts, hunt

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def cuda() -> Any:
    from gpu_backend.devices.cuda import CudaDevice

    return CudaDevice()


#: Each is to be seen to have carried out ops.
WAYS = frozenset(("gathered with others", "launched again", "given to the library of products"))


def nothing_differs(counts: Counts) -> None:
    assert not [*counts.differences()]
    assert counts.ways.keys() >= WAYS


@pytest.mark.gpu
def test_random_programs_give_cupys_bits(cuda: Any) -> None:
    """What is drawn of a few phrases need not have gone each way: then it goes on with others."""
    counts = Counts()
    for phrases in range(1, 9):
        counts.add(hunt(7, cuda, structures=20, combinations=1 + len(PASSES), phrases=phrases))
        if counts.found or (counts.structures >= 40 and counts.ways.keys() >= WAYS):
            break
    nothing_differs(counts)


@pytest.mark.gpu_long
@pytest.mark.parametrize("seed", range(100, 110))
def test_many_random_programs_give_cupys_bits(cuda: Any, seed: int) -> None:
    nothing_differs(hunt(seed, cuda, structures=200))
