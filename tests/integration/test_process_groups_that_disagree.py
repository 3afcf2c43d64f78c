"""Process groups whose ranks do not give the same: it is said, and what follows is right again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from gpu_backend.pool.settings import PoolSettings
from gpu_backend.pool.state import PoolState
from tests.integration.notebook_pool import cpu_pool
from tests.integration.ranks import ranks

pytestmark = pytest.mark.timeout(600)

#: Each line of a program notes what it raises; what is computed after it is noted as well.
_HEAD = """
comm = init_process_group(size, rank)
told = []

def why(function, *args, **kwargs):
    try:
        function(*args, **kwargs)
        comm._exchange.client.session.synchronize()
    except Exception as error:
        told.append(f"{type(error).__name__}: {error}")
    else:
        told.append("")

def works():
    out = cp.empty(3)
    comm.all_reduce(cp.full(3, rank + 1.0), out)
    told.append(out.get().tolist())

"""
_TAIL = "\nprint(json.dumps(told))\n"
_WORKS = [3.0] * 3


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PoolState]:
    settings = PoolSettings(devices="cpu", sessions_per_device=8, max_sessions_per_user=0)
    with cpu_pool(tmp_path_factory.mktemp("groups"), settings) as own:
        yield own


def told_by(program: str) -> list[Any]:
    return ranks(_HEAD + program + _TAIL, 2)


def test_arrays_of_other_sizes_are_told_and_not_filled_with_what_was_there(pool: PoolState) -> None:
    first, second = told_by("why(comm.broadcast, cp.empty(4 + rank), 0)\nworks()")
    assert first == ["", _WORKS]
    assert second[0].startswith("NotCopied: What was sent from one device to another has 32 bytes")
    assert second[1:] == [_WORKS]


@pytest.mark.parametrize("wrong", ["csc", "coo"])
def test_sparse_matrices_of_other_formats_are_refused(pool: PoolState, wrong: str) -> None:
    program = """
    own = sparse.csr_matrix(cp.asarray([[0.0, 1.0], [0.0, 0.0]])).asformat(("csr", WRONG)[rank])
    why(comm.broadcast, own, 0)
    works()
    why(comm.all_gather, own, [], 0)
    why(comm.send, own, 1) if rank == 0 else why(comm.recv, own, 0)
    works()
    """.replace("    ", "").replace("WRONG", repr(wrong))
    first, second = told_by(program)
    upper = wrong.upper()
    said = (
        "ValueError: Rank {} sent a matrix in {} format, and here one in {} is expected: "
        "all ranks give matrices of one format."
    )
    assert first == ["", _WORKS, said.format(1, upper, "CSR"), "", _WORKS]
    assert second == [
        said.format(0, "CSR", upper), _WORKS, said.format(0, "CSR", upper), said.format(0, "CSR", upper), _WORKS
    ]  # fmt: skip


def test_a_call_that_one_rank_refuses_is_over_for_all(pool: PoolState) -> None:
    program = """
own, out = sparse.eye(3, format="csr"), sparse.eye(3, format=("csc", "csr")[rank])
why(comm.all_reduce, own, out)
works()
"""
    first, second = told_by(program)
    assert first == ["ValueError: in_array and out_array must be the same format", _WORKS]
    assert second[1:] == [_WORKS]


def test_the_arrays_of_a_sparse_matrix_need_not_be_contiguous(pool: PoolState) -> None:
    program = """
own = sparse.eye(3, format="csr")
own.data = cp.arange(6.0)[::2]
own = own if rank == 0 else sparse.csr_matrix((1, 1))
comm.broadcast(own, 0)
told.append(own.todense().get().tolist())
"""
    assert told_by(program) == [[[[0.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 4.0]]]] * 2


_INTERRUPTED = """
from kernelproxy.namespace.process_group import sparse as of_matrices

class Interrupted(BaseException):
    pass

def room(*of):
    raise Interrupted

own = sparse.eye(3, format="csr") * (rank + 1)
if rank == 0:  # after how large it is was exchanged, and before what it is made of was
    usual, of_matrices._rooms = of_matrices._rooms, room
every = []
try:
    comm.all_gather(own, every, 0)
    comm._exchange.client.session.synchronize()
    told.append("")
except Interrupted:
    of_matrices._rooms = usual
    told.append("interrupted")
except Exception as error:
    told.append(type(error).__name__)
works()
"""


def test_a_rank_that_is_interrupted_between_two_exchanges_has_right_numbers_afterwards(pool: PoolState) -> None:
    first, second = told_by(_INTERRUPTED)
    assert first == ["interrupted", _WORKS]
    assert second[1:] == [_WORKS]
    assert second[0] == "NotCopied"
