"""A connection that is cut again and again, mid-message: nothing is lost, nothing is done twice."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest

from gpu_backend.transport.private_files import write_private
from kernelproxy.session.handover import TICKET_VARIABLE

from .conftest import Faulty
from .cutter import Cutter, cutting
from .notebook import Notebook

#: A Unix socket beside which all passes through shared memory.
MEMORY = "memory"


@contextmanager
def cut_notebook(faulty: Faulty, scheme: str, cuts: Sequence[int]) -> Iterator[tuple[Notebook, Cutter]]:
    """Have a notebook whose way to its executor is cut."""
    ticket = faulty.pool.open()
    way, passes_memory = ("unix", True) if scheme == MEMORY else (scheme, False)
    (target,) = [endpoint for endpoint in ticket.endpoints if endpoint.startswith(way)]
    with (
        TemporaryDirectory(prefix="gwb") as directory,
        cutting(target, cuts, passes_memory) as cutter,
    ):
        handed = Path(directory) / "ticket.json"
        write_private(handed, msgspec.json.encode(msgspec.structs.replace(ticket, endpoints=(cutter.endpoint,))))
        with Notebook(faulty.config(), **{TICKET_VARIABLE: str(handed)}) as notebook:
            yield notebook, cutter


def check_until_uncut(notebook: Notebook, cutter: Cutter, cell: str, expected: str) -> None:
    """Run a cell until no cut is left: how many bytes pass depends on how ops fall into messages."""
    assert notebook.value(cell) == expected
    while cutter.cuts_left:
        assert notebook.value(cell) == expected


@pytest.fixture(params=["unix", "tls", MEMORY])
def scheme(request: pytest.FixtureRequest) -> str:
    """All ways to an executor."""
    return str(request.param)


CHAIN = """
x, expected = cp.arange(50), np.arange(50)
for step in range(4000):
    if step % 3:
        x *= 3          # in place: done twice or not at all, it would show
        x %= 1_000_003
    else:
        x = x + step
    expected = expected * 3 % 1_000_003 if step % 3 else expected + step
    if step % 97 == 0:
        assert (x.get() == expected).all(), step
(x.get() == expected).all(), current_session().epoch
"""


@pytest.mark.usefixtures("undisturbed")
def test_a_long_computation_comes_out_right(faulty: Faulty, scheme: str) -> None:
    chance = random.Random(1)
    cuts = [chance.randrange(100, 20_000) for _ in range(20)]
    with cut_notebook(faulty, scheme, cuts) as (notebook, cutter):
        check_until_uncut(notebook, cutter, CHAIN, "(np.True_, 1)")
        assert cutter.connections >= len(cuts)


@pytest.mark.usefixtures("undisturbed")
@pytest.mark.parametrize("scheme", ["unix", "tls", MEMORY])
def test_large_arrays_arrive_whole_both_ways(faulty: Faulty, scheme: str) -> None:
    cuts = [9 << 20, 20 << 20, 17 << 20, 30 << 20, 11 << 20, 40 << 20]
    if scheme == MEMORY:
        cuts = [cut >> 14 for cut in cuts]
    with cut_notebook(faulty, scheme, cuts) as (notebook, cutter):
        cell = """
        host = np.random.default_rng(5).integers(0, 255, 50_000_000, np.uint8)
        there = cp.asarray(host)
        there += 1
        back = there.get()
        (back == host + np.uint8(1)).all(), current_session().epoch
        """
        check_until_uncut(notebook, cutter, "\n".join(line.strip() for line in cell.splitlines()), "(np.True_, 1)")


@pytest.mark.usefixtures("undisturbed")
def test_errors_are_told_once_and_pauses_are_bridged(faulty: Faulty, scheme: str) -> None:
    with cut_notebook(faulty, scheme, [3_000] * 10) as (notebook, cutter):
        notebook.value("x = cp.array([-1]); int(x[0])")
        cell = """
        told = 0
        for _ in range(100):
            try:
                cp.bincount(x)
            except ValueError:
                told += 1
        told
        """
        check_until_uncut(notebook, cutter, "\n".join(line[8:] for line in cell.splitlines()), "100")
        cutter.cut()  # and once more while nothing happens
        assert notebook.value("x.tolist(), current_session().epoch") == "([-1], 1)"


UPLOADS = """
rng, wrong = np.random.default_rng(7), 0
there = cp.zeros(3_000_000)
for size in (100, 60_000, 3_000_000) * 3:
    host = rng.random(size)
    expected = host.copy()
    made = cp.asarray(host)
    host[:] = -1            # nothing of this may arrive, and the connection is cut somewhere
    part, given = there[:size], expected.copy()
    part.set(given)
    given[:] = -2
    wrong += (made.get() != expected).sum() + (part.get() != expected).sum()
int(wrong), current_session().epoch
"""


@pytest.mark.usefixtures("undisturbed")
@pytest.mark.parametrize("scheme", ["unix", "tls", MEMORY])
def test_what_is_uploaded_is_what_lay_there_at_the_call(faulty: Faulty, scheme: str) -> None:
    cuts = [300_000, 2 << 20, 9 << 20, 30 << 20, 7 << 20, 50_000, 20 << 20]
    if scheme == MEMORY:
        cuts = [max(300, cut >> 14) for cut in cuts]
    with cut_notebook(faulty, scheme, cuts) as (notebook, cutter):
        check_until_uncut(notebook, cutter, UPLOADS, "(0, 1)")


MOVED_BYTES = 64 << 20
UPLOAD = f"""
host = np.random.default_rng(11).integers(0, 255, {MOVED_BYTES}, np.uint8)
there = cp.asarray(host)
current_session().epoch
"""
DOWNLOAD = "int((there.get() != host).sum())"


@pytest.mark.usefixtures("undisturbed")
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("is_download", [False, True])
def test_a_large_copy_goes_on_from_where_it_was_cut(faulty: Faulty, is_download: bool, seed: int) -> None:
    """From the start, each cut would cost all that had passed: twice as much as there is in all."""
    chance = random.Random(seed)
    cuts = [chance.randrange(MOVED_BYTES * 6 // 10, MOVED_BYTES * 8 // 10)]
    with cut_notebook(faulty, "tls", [] if is_download else cuts) as (notebook, cutter):
        assert notebook.value(UPLOAD) == "1"
        if is_download:
            cutter.cut_after(cuts)
            passed = cutter.passed_in_all
            assert notebook.value(DOWNLOAD) == "0"
            passed = cutter.passed_in_all - passed
        else:
            passed = cutter.passed_in_all
            assert notebook.value(DOWNLOAD) == "0"
        assert not cutter.cuts_left
        # What is under way at the cut is lost: what the systems hold for those who read, and a piece that came in part.
        assert MOVED_BYTES < passed < MOVED_BYTES + cuts[0] * 2 // 3


AGAIN = """
wrong = 0
for turn in range(4):
    host[turn * 1_000_000] += 1
    for _ in range(3):
        there = cp.asarray(host)
        wrong += int((there.get() != host).sum())
wrong, current_session().epoch
"""


@pytest.mark.usefixtures("undisturbed")
@pytest.mark.parametrize("seed", range(3))
def test_what_was_kept_is_still_there_behind_a_cut(faulty: Faulty, seed: int) -> None:
    """Cuts while contents are sent and kept, and while they are named; what was sent before is not sent again."""
    chance = random.Random(seed)
    with cut_notebook(faulty, "tls", [chance.randrange(1 << 20, 30 << 20)]) as (notebook, cutter):
        notebook.run("from kernelproxy.stream import link_speed; link_speed.WORTH = 0.0")  # however fast loopback is
        assert notebook.value("host = np.random.default_rng(12).integers(0, 255, 32 << 20, np.uint8); host.nbytes")
        assert notebook.value("there = cp.asarray(host); int((there.get() != host).sum())") == "0"
        assert not cutter.cuts_left
        cutter.cut()
        assert notebook.value("current_session().counters.kept_bytes") == "0"
        assert notebook.value("there = cp.asarray(host); int((there.get() != host).sum())") == "0"
        assert notebook.value("current_session().counters.kept_bytes") == str(32 << 20)
        cutter.cut_after([chance.randrange(1 << 20, 60 << 20) for _ in range(5)])
        assert notebook.value(AGAIN) == "(0, 1)"
        assert not cutter.cuts_left
