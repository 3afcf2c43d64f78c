"""Process groups: real processes, each with a session of its own, that meet at a real pool and compute together."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpu_backend.pool.settings import PoolSettings
from gpu_backend.pool.state import PoolState
from tests.integration.notebook_pool import cpu_pool
from tests.integration.ranks import ROOT, end_all, ranks

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PoolState]:
    settings = PoolSettings(devices="cpu", sessions_per_device=8, max_sessions_per_user=0)
    with cpu_pool(tmp_path_factory.mktemp("groups"), settings) as own:
        yield own


@pytest.fixture(autouse=True)
def _each_begins_alone(pool: PoolState) -> Iterator[None]:
    """Have a test's sessions gone before the next one: its own would wait in the queue, and say so."""
    yield
    end_all(pool)


_ALL_OF_IT = """
comm = init_process_group(size, rank)
found = {}

def note(name, remote, expected):
    host = remote.get()
    found[name] = bool((host == expected).all()) and host.dtype == expected.dtype

def of(which, shape, dtype):
    values = np.random.default_rng(which).integers(1, 4, shape)
    return (values + (1j * values if np.dtype(dtype).kind == "c" else 0)).astype(dtype)

for dtype in "bBiIlLqQefdFD":
    hosts = [of(one, (size, 5), dtype) for one in range(size)]
    own = cp.asarray(hosts[rank])
    for op, together in (("sum", np.add), ("prod", np.multiply), ("min", np.minimum), ("max", np.maximum)):
        if dtype in "FD" and op != "sum":
            continue
        expected = hosts[0]
        for one in hosts[1:]:
            expected = together(expected, one)
        out = cp.zeros_like(own)
        comm.all_reduce(own, out, op)
        note(f"all_reduce {dtype} {op}", out, expected)
        same = own.copy()
        comm.all_reduce(same, same, op)
        note(f"in place {dtype} {op}", same, expected)
        for root in (0, size - 1):
            out = cp.zeros_like(own)
            comm.reduce(own, out, root, op)
            note(f"reduce {dtype} {op} {root}", out, expected if rank == root else np.zeros_like(expected))
        part = cp.zeros(5, dtype)
        comm.reduce_scatter(own, part, 5, op)
        note(f"reduce_scatter {dtype} {op}", part, expected[rank])
    for root in (0, size - 1):
        same = own.copy()
        comm.broadcast(same, root)
        note(f"broadcast {dtype} {root}", same, hosts[root])
        part = cp.zeros(5, dtype)
        comm.scatter(own, part, root)
        note(f"scatter {dtype} {root}", part, hosts[root][rank])
        whole = cp.zeros((size, size, 5), dtype)
        comm.gather(own, whole, root)
        note(f"gather {dtype} {root}", whole, np.array(hosts) if rank == root else np.zeros((size, size, 5), dtype))
    whole = cp.zeros((size, size, 5), dtype)
    comm.all_gather(own, whole, own.size)
    note(f"all_gather {dtype}", whole, np.array(hosts))
    out = cp.zeros_like(own)
    comm.all_to_all(own, out)
    note(f"all_to_all {dtype}", out, np.array([one[rank] for one in hosts]))
    to, since = (rank + 1) % size, (rank - 1) % size
    out = cp.zeros_like(own)
    if rank % 2:
        comm.recv(out, since)
        comm.send(own, to)
    else:
        comm.send(own, to)
        comm.recv(out, since)
    note(f"send {dtype}", out, hosts[since])
    for peer in range(size):
        mine = cp.zeros_like(own)
        comm.send_recv(own, mine, peer) if peer == rank or size == 2 else None
        note(f"send_recv {dtype} {peer}", mine, hosts[peer] if peer == rank or size == 2 else np.zeros_like(hosts[0]))
comm.barrier()
comm.stop()
print(json.dumps([name for name, is_so in found.items() if not is_so] + [len(found) > 300]))
"""


@pytest.mark.parametrize("size", [2, 3])
def test_what_groups_do_is_what_numpy_says_of_every_dtype(pool: PoolState, size: int) -> None:
    assert ranks(_ALL_OF_IT, size) == [[True]] * size


_LARGE = """
comm = init_process_group(size, rank)
count = (11 << 20) // 8 * size + 3  # several pieces to each, and no round number of them
hosts = [np.random.default_rng(one).normal(size=count) for one in range(size)]
own, out = cp.asarray(hosts[rank]), cp.empty(count)
comm.all_reduce(own, out)
total = hosts[0].copy()
for one in hosts[1:]:
    total += one
found = [bool((out.get() == total).all())]
comm.broadcast(out, size - 1)
columns = cp.empty((count, 1), order="F")
comm.reduce(own, columns, 1, "max")
found.append(rank != 1 or bool((columns.get().ravel() == np.max(hosts, 0)).all()))
whole, back = cp.empty((size, count)), cp.empty((size, count))
comm.all_gather(own, whole, count)
comm.all_to_all(whole, back)
found.append(bool((whole.get() == np.array(hosts)).all() and (back.get() == hosts[rank]).all()))
stream = cp.cuda.Stream(non_blocking=True)
comm.all_reduce(own, out, "sum", stream)
with stream:
    twice = out * 2
found.append(bool((twice.get(stream) == 2 * total).all()))  # the default stream waits for no other
from kernelproxy.client import current
counters = current().pipeline.counters
passed = sum(counters.sent_bytes.values()) + sum(counters.received_bytes.values())
print(json.dumps([found, counters.direct_bytes > 2 * own.nbytes]))
"""


@pytest.mark.parametrize("size", [2, 3])
def test_what_is_large_passes_in_pieces_and_nobody_waits_for_ever(pool: PoolState, size: int) -> None:
    assert ranks(_LARGE, size) == [[[True] * 4, True]] * size


_SAME_BITS = """
comm = init_process_group(size, rank)
found = []
for count in (100, 100_000):
    out = cp.empty(count, "f")
    comm.all_reduce(cp.asarray(np.random.default_rng(rank).normal(size=count).astype("f")), out)
    found.append(out.get().tobytes().hex()[:4000])
print(json.dumps(found))
"""


def test_all_ranks_have_the_same_bits(pool: PoolState) -> None:
    first, second, third = ranks(_SAME_BITS, 3)
    assert first == second == third


_SPARSE = """
comm = NCCLBackend(size, rank, "sparse", 1)
found = []

def matrix(which, form, dtype="d"):
    dense = np.zeros((3 + which, 4), dtype)
    dense[which % 3, :2 + which % 2] = which + 1
    return sparse.csr_matrix(cp.asarray(dense)).asformat(form)

def square(which, form):
    return (sparse.eye(4, format="csr") * (which + 2)).asformat(form)

def empty(form):
    return sparse.csr_matrix((1, 1)).asformat(form)

def note(remote, expected):
    found.append(bool((remote.todense().get() == expected.todense().get()).all()) and remote.shape == expected.shape)

for form in ("csr", "csc", "coo"):
    own = matrix(rank, form)
    for root in (0, size - 1):
        out = matrix(root, form) if rank == root else empty(form)
        comm.broadcast(out, root)
        note(out, matrix(root, form))
        out = empty(form)
        comm.scatter([matrix(one, form) for one in range(size)], out, root)
        note(out, matrix(rank, form))
        every = []
        comm.gather(own, every, root)
        found.append(len(every) == (size if rank == root else 0))
        [note(one, matrix(which, form)) for which, one in enumerate(every)]
        for op, scale in (("sum", sum(range(2, 2 + size))), ("prod", int(np.prod(range(2, 2 + size))))):
            out = empty(form)
            comm.reduce(square(rank, form), out, root, op)
            if rank == root:
                note(out, sparse.eye(4, format="csr") * scale)
            out = empty(form)
            comm.all_reduce(square(rank, form), out, op)
            note(out, sparse.eye(4, format="csr") * scale)
    every = []
    comm.all_gather(own, every, 0)
    [note(one, matrix(which, form)) for which, one in enumerate(every)]
    every = []
    comm.all_to_all([matrix(rank + one, form) for one in range(size)], every)
    [note(one, matrix(which + rank, form)) for which, one in enumerate(every)]
    out = empty(form)
    comm.reduce_scatter([square(one, form) for one in range(size)], out, size)
    note(out, sparse.eye(4, format="csr") * (rank + 2) * size)
    out = empty(form)
    comm.send_recv(own, out, rank)
    note(out, own)
    if size == 2:
        comm.send_recv(own, out, 1 - rank)
        note(out, matrix(1 - rank, form))
    if rank == 0:
        comm.send(own, 1)
    elif rank == 1:
        comm.recv(out, 0)
        note(out, matrix(0, form))
print(json.dumps([all(found), len(found) > 40]))
"""


@pytest.mark.parametrize("size", [2, 3])
def test_sparse_matrices_of_each_format(pool: PoolState, size: int) -> None:
    assert ranks(_SPARSE, size) == [[True, True]] * size


_REFUSED = """
from gpu_backend.wire.errors import NotCopied

comm = init_process_group(1, 0)
x, out = cp.arange(6.0).reshape(2, 3), cp.empty((2, 3))

def why(function, *args, **kwargs):
    try:
        function(*args, **kwargs)
    except Exception as error:
        return f"{type(error).__name__}: {error}"

print(json.dumps([
    why(comm.all_reduce, x[:, ::2], out), why(comm.all_reduce, x, out, "mean"),
    why(comm.all_reduce, x.astype("F"), out.astype("F"), "max"), why(comm.broadcast, x.astype("h")),
    why(comm.broadcast, x > 1), why(comm.scatter, x, out), why(comm.gather, x, out), why(comm.all_reduce, x, out[0]),
    why(comm.send, x, 0), why(comm.send, x, 1), why(comm.broadcast, np.ones(3)),
    why(comm.broadcast, sparse.eye(3, format="dia")), why(init_process_group, 0, 0), why(init_process_group, 2, 2),
    why(init_process_group, 1, 0, backend="mpi"), why(init_process_group, 17, 0),
]))
"""


def test_what_is_refused_is_refused_in_cupys_words_before_anything_is_sent(pool: PoolState) -> None:
    (told,) = ranks(_REFUSED, 1)
    assert [one.partition(". Give")[0] for one in told] == [
        "RuntimeError: NCCL requires arrays to be either c- or f-contiguous",
        "RuntimeError: Unknown op mean for NCCL",
        "ValueError: Only nccl.SUM is supported for complex arrays",
        "TypeError: Unknown dtype int16 for NCCL",
        "TypeError: Unknown dtype bool for NCCL",
        "RuntimeError: scatter requires in_array to have 1 elements in its first dimension, found (2, 3)",
        "RuntimeError: gather requires out_array to have 1 elements in its first dimension, found (2, 3)",
        "ValueError: 6 elements of float64 do not fit into an array of 24 bytes.",
        "ValueError: Rank 0 cannot send to itself, or receive from itself, but by send_recv.",
        "ValueError: There is no rank 1 in a group of 1.",
        "TypeError: A process group takes arrays of its device, and not ndarray.",
        "TypeError: NCCL is not supported for this type of sparse matrix",
        "ValueError: Invalid number of devices 0",
        "ValueError: Invalid number of rank 2 2",
        "ValueError: mpi is not supported",
        "PoolRefusal: There is no rank 0 among 17: a group has 1 to 16 ranks, and a name.",
    ]


_TWO_GROUPS = """
first = init_process_group(size, rank, port=1)
second = init_process_group(size, size - 1 - rank, port=2)
again = init_process_group(size, rank, port=1)
found = []
for _ in range(20):
    for comm in (first, second, again):
        every = cp.empty(size)
        comm.all_gather(cp.full(1, float(rank)), every, 1)
        found.append(every.get().tolist())
print(json.dumps([found[0], found[1], found == 20 * found[:3]]))
"""


def test_several_groups_at_once_are_not_in_each_others_way(pool: PoolState) -> None:
    assert ranks(_TWO_GROUPS, 2) == [[[0.0, 1.0], [1.0, 0.0], True]] * 2


_SPAWNED = """
import multiprocessing

def work(rank, size, queue):
    import cupy as cp
    from cupyx.distributed import init_process_group
    comm = init_process_group(size, rank)
    total = cp.empty(3)
    comm.all_reduce(cp.full(3, rank + 1.0), total)
    queue.put(total.get().tolist())

if __name__ == "__main__":
    import kernelproxy
    kernelproxy.activate()
    import cupy as cp
    own = cp.arange(3)
    context = multiprocessing.get_context(sys.argv[1])
    queue = context.Queue()
    children = [context.Process(target=work, args=(rank, 2, queue)) for rank in range(2)]
    [one.start() for one in children]
    found = [queue.get() for _ in children]
    [one.join() for one in children]
    print(json.dumps([found, own.get().tolist()]))
"""


@pytest.mark.parametrize("how", ["fork", "spawn"])
def test_processes_that_a_program_starts_are_ranks(pool: PoolState, tmp_path: Path, how: str) -> None:
    program = tmp_path / "ranks.py"
    program.write_text("import json, sys\n" + _SPAWNED.replace("    import cupy as cp\n    from cupyx", _ACTIVATED, 1))
    done = subprocess.run(
        [sys.executable, str(program), how], capture_output=True, text=True, timeout=300, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert json.loads(done.stdout or "null") == [[[3.0] * 3] * 2, [0, 1, 2]], done.stderr


_ACTIVATED = "    import kernelproxy\n    kernelproxy.activate()\n    import cupy as cp\n    from cupyx"


_MANY = """
comm = init_process_group(size, rank)
every = cp.empty(size)
comm.all_gather(cp.full(1, float(rank)), every, 1)
print(json.dumps(every.get().tolist()))
"""


def test_six_ranks_of_one_node_find_each_other(pool: PoolState) -> None:
    """Who comes last has channels to all others opened at once."""
    assert ranks(_MANY, 6) == [[float(one) for one in range(6)]] * 6
