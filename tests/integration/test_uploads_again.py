"""A cell that uploads, run again from another host: what the executor has kept does not travel a second time."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from gpu_backend.pool.state import PoolState
from tests.faults.notebook import Notebook
from tests.integration.notebook_pool import warm_pool

pytestmark = pytest.mark.timeout(300)

MEBIBYTE = 1 << 20
_AS_ON_ANOTHER_MACHINE = """
from gpu_backend.transport import local
from kernelproxy.stream import link_speed
local.here = lambda: 'another machine'
link_speed.WORTH = 0.0  # however fast loopback is
"""
_SENT = "current_session().pipeline.connection.bytes_sent"
_HOST = f"host = np.random.default_rng(3).integers(0, 1 << 62, {32 * MEBIBYTE // 8})"
_UPLOAD = f"""
before = {_SENT}
there = cp.asarray(host)
cp.cuda.get_current_stream().synchronize()
sent = {_SENT} - before
bool((there.get() == host).all()), sent
"""


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PoolState]:
    with warm_pool(tmp_path_factory.mktemp("pool")) as own:
        yield own


@pytest.fixture
def notebook(pool: PoolState) -> Iterator[Notebook]:
    """One that believes itself on another machine, with an array of 32 MiB."""
    with Notebook(pool.root / "client.toml") as mine:
        mine.run(_AS_ON_ANOTHER_MACHINE)
        mine.run(_HOST)
        assert mine.value("float(cp.arange(3.0).sum())") == "3.0"
        assert mine.value("current_session().pipeline.connection.endpoint").startswith("'tls://")
        yield mine


def sent_by_upload(notebook: Notebook) -> int:
    """Upload the array; return how many bytes that sent, and see that it arrived bit for bit."""
    is_same, sent = eval(notebook.value(_UPLOAD))
    assert is_same
    return int(sent)


def test_the_same_array_travels_once(notebook: Notebook) -> None:
    assert sent_by_upload(notebook) > 32 * MEBIBYTE
    assert sent_by_upload(notebook) < 10_000
    counted = notebook.value("(c := current_session().counters.to_dict())['kept_bytes'], c['sent_bytes']")
    assert counted == str((32 * MEBIBYTE, {"network": 32 * MEBIBYTE}))


def test_of_a_changed_array_only_the_piece_travels_that_changed(notebook: Notebook) -> None:
    sent_by_upload(notebook)
    notebook.run("host[3_000_000] += 1")
    assert 4 * MEBIBYTE < sent_by_upload(notebook) < 5 * MEBIBYTE
    notebook.run("host[3_000_000] -= 1")
    assert sent_by_upload(notebook) < 10_000


def test_it_is_written_into_an_array_that_is_there_as_well(notebook: Notebook) -> None:
    sent_by_upload(notebook)
    assert notebook.value("there[:] = 0; part = there[: 1 << 20]; part.set(host[: 1 << 20])")
    assert notebook.value(f"before = {_SENT}; part.set(host[: 1 << 20]); {_SENT} - before < 10_000") == "True"
    assert notebook.value("bool((part.get() == host[: 1 << 20]).all()), int(there[1 << 20 :].any())") == "(True, 0)"


def test_the_executors_successor_is_sent_all(notebook: Notebook) -> None:
    sent_by_upload(notebook)
    os.kill(notebook.executor_pid(), signal.SIGKILL)
    assert notebook.run("float(there.sum())").error == "SessionLost"
    assert sent_by_upload(notebook) > 32 * MEBIBYTE
    assert sent_by_upload(notebook) < 10_000


_INTERRUPTED = """
import _thread, threading
threading.Timer({seconds}, _thread.interrupt_main).start()
while True:
    host += 1
    there = cp.asarray(host)
    there = cp.asarray(host)
"""


def test_behind_an_interrupt_all_is_right_and_is_kept_again(notebook: Notebook) -> None:
    for hundredths in range(0, 70, 7):
        assert notebook.run(_INTERRUPTED.format(seconds=hundredths / 100)).error == "KeyboardInterrupt"
        sent_by_upload(notebook)
        assert sent_by_upload(notebook) < 10_000
