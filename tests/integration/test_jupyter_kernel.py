"""The kernel as Jupyter runs it: its lease, its interrupt, its restart, its death, and the magics in it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from jupyter_client.manager import AsyncKernelManager, KernelManager
from tornado.web import HTTPError

from gpu_backend.pool.settings import PoolSettings
from gpu_backend.pool.state import PoolState
from tests.integration.notebook_pool import cpu_pool, sessions, wait_until, warm
from tests.integration.running_kernel import PATIENT, READY_SECONDS, Notebook, leased, notebook
from workbench.commands.install import install

_COUNT = "import cupy as cp\nx = cp.arange(10)\nprint(float(x.sum()))"


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PoolState]:
    root = tmp_path_factory.mktemp("kernel")
    with cpu_pool(root, PoolSettings(devices="cpu", max_sessions_per_user=2, warm_executors_per_device=2)) as own:
        yield own


@pytest.fixture(autouse=True)
def no_session_left(pool: PoolState) -> None:
    """A session that was given back is closing until its executor has ended; two are had as soon as they are wanted."""
    wait_until(lambda: sessions(pool) == () and warm(pool) >= 2)


def test_a_session_from_start_to_end(pool: PoolState) -> None:
    with leased(pool) as running:
        (taken,) = sessions(pool)
        assert taken.epoch == 1, "the lease is taken before the kernel runs"
        assert running.run(_COUNT) == "45.0\n"
        running.restart()
        (kept,) = sessions(pool)
        assert (kept.session, kept.epoch) == (taken.session, 2)
        assert running.run("x").startswith("NameError")
        assert running.run(_COUNT) == "45.0\n"
    wait_until(lambda: sessions(pool) == ())


def test_the_connection_to_the_server_can_be_encrypted(pool: PoolState) -> None:
    with notebook(transport_encryption="required") as running:
        assert running.run(_COUNT) == "45.0\n"


def test_status_and_connect(pool: PoolState) -> None:
    with leased(pool) as running:
        (taken,) = sessions(pool)
        assert "connected" in running.run("%gpu connect")
        assert taken.session in running.run("%gpu status")
        assert running.run("state = %gpu status --json\nprint(state['device']['kind'])") == "cpu\n"
        before = int(running.run("state = %gpu\nprint(state.counters['round_trips'])"))
        assert running.run(_COUNT) == "45.0\n"
        assert int(running.run("state = %gpu\nprint(state.counters['round_trips'])")) > before
        assert "UsageError" in running.run("%gpu connect tcp://127.0.0.1:9 --server-key k")
        assert running.run("x").startswith("array"), "the refused connection left the old one as it was"


def test_sharing_and_usage(pool: PoolState) -> None:
    with notebook() as running:
        assert "interactive" in running.run("%gpu class")
        assert "best-effort" in running.run("%gpu class best-effort --limit 0.5")
        assert running.run(_COUNT) == "45.0\n"
        assert [one.kind for one in sessions(pool)] == ["best-effort"], "said before the session was needed"
        assert "UsageError: You asked for the class production" in running.run("%gpu class production")
        assert running.run("told = %gpu class --json\nprint(told['class'], told['limit'])") == "best-effort 0.5\n"
        running.run("%gpu class interactive")
        assert [one.kind for one in sessions(pool)] == ["interactive"]
        assert "sessions (you)" in running.run("%gpu usage")
        for since in ("7d", "today", "2026-01-31"):
            assert "sessions (you)" in running.run(f"%gpu usage --since {since}")
        assert "UsageError: 'never' is no day" in running.run("%gpu usage --since never")


def test_magics_are_completed(pool: PoolState) -> None:
    with notebook() as running:
        assert running.complete("%gpu class b") == ["best-effort"]
        assert running.complete("%gpu st") == ["status"]
        assert running.complete("%gpu status --") == ["--all", "--json"]


def test_a_full_pool_refuses_in_words(pool: PoolState) -> None:
    with leased(pool), leased(pool):
        with pytest.raises(HTTPError) as refused:
            KernelManager(kernel_name="remote-gpu", config=PATIENT).start_kernel()
        assert refused.value.reason == "The GPU pool gave no session"
        assert "2" in str(refused.value.log_message)
        assert len(sessions(pool)) == 2


@pytest.mark.parametrize(
    "code",
    [
        "while True: x = x + 1",
        "for _ in range(10**7): x = cp.sin(x)\nfloat(x[0])",
        "import asyncio; await asyncio.Event().wait()",
        "import asyncio; await asyncio.sleep(0)\nwhile True: float(cp.sin(x)[0])",
    ],
    ids=["recording", "far ahead", "awaiting", "computing after await"],
)
def test_an_interrupt_stops_the_cell_and_little_is_left_to_do(pool: PoolState, code: str) -> None:
    with notebook() as running:
        running.run("import cupy as cp\nx = cp.zeros(100_000)")
        said = running.interrupted(code)
        # asyncio cancels a cell that awaits; one that computes gets what every cell gets.
        assert said.startswith(("KeyboardInterrupt", "CancelledError"))
        assert running.run("float(cp.ones(3).sum())") == "3.0"
        assert running.run("bool(cp.isfinite(x).all())") == "True", "what the cell asked for was done"


def test_after_an_interrupt_arrays_agree_with_what_was_counted(pool: PoolState) -> None:
    with notebook() as running:
        running.run("import cupy as cp\nu, x, n = cp.zeros(1_000), cp.zeros(1_000), 0")
        for _ in range(3):
            said = running.interrupted("while True:\n    u = u + 1\n    x += 1\n    n += 1")
            assert "KeyboardInterrupt" in said
            assert running.run("print(0 <= u[0] - n <= 1 and 0 <= x[0] - n <= 1)\nn = int(u[0]); x[:] = n") == "True\n"


#: Work that nobody foresaw to be long, as a kernel does that counts to a number it is given.
_UNFORESEEN = """
from kernelproxy import current_session
from kernelproxy.calls import interruption
interruption._HEAR_SECONDS = 60
current_session().pipeline.ahead.has_room = lambda batch: True
"""
_LONG = "for n in range(10**9):\n    u = u * 1.0000001\n    x += 1\n    if n == 3000: print('queued', flush=True)"


def _far_ahead(running: Notebook) -> str:
    running.run("import cupy as cp\nkept = cp.arange(3); u, x = cp.ones(3_000_000), cp.zeros(3_000_000); float(u[0])")
    running.run(_UNFORESEEN)
    message_id: str = running.client.execute(_LONG)
    while True:
        message = running.client.get_iopub_msg(timeout=60.0)
        if message["msg_type"] == "stream" and "queued" in message["content"]["text"]:
            break
    running.manager.interrupt_kernel()
    said = running.collect(message_id)
    assert "interrupt again to drop it" in said
    return said


_DROPPED = ("operations that had not begun are dropped", "Never computed: u.", "Not brought up to date: x.")


def test_a_second_interrupt_drops_the_rest_and_names_what_is_lost(pool: PoolState) -> None:
    with notebook() as running:
        _far_ahead(running)
        said = running.interrupted("float(u[0])")
        for told in _DROPPED:
            assert told in said
        assert running.run("kept.tolist()") == "[0, 1, 2]"
        shown = running.run("u")
        assert "OpCancelled" in shown
        assert "recorded earlier" in running.traceback
        assert "u = u * 1.0000001" in running.traceback, "the line that asked for it is blamed"
        assert "pretty.py, line" not in running.traceback.partition("recorded earlier")[2]


#: The next cell is interrupted where IPython compiles its second statement.
_STRIKE = """
import os, signal
shell = get_ipython()
class Struck(type(shell.compile)):
    compiled = 0
    def __call__(self, *given):
        Struck.compiled += 1
        if Struck.compiled == 2:
            self.__class__ = Struck.__base__
            signal.raise_signal(signal.SIGINT)
        return super().__call__(*given)
shell.compile.__class__ = Struck
"""


def test_a_second_interrupt_between_two_statements_does_so_too(pool: PoolState) -> None:
    with notebook() as running:
        _far_ahead(running)
        running.run(_STRIKE)
        said = running.run("reached = 1\nreached = 2")
        for told in ("KeyboardInterrupt", *_DROPPED):
            assert told in said
        assert running.run("reached") == "1"
        assert running.run("kept.tolist()") == "[0, 1, 2]"


#: The next cell is interrupted inside a method of IPython's history, before or after the user's own code.
_STRIKE_ITSELF = """
import asyncio, signal
def strike(name):
    history = get_ipython().history_manager
    former = getattr(history, name)
    def struck(*given, **named):
        setattr(history, name, former)
        signal.raise_signal(signal.SIGINT)
        return former(*given, **named)
    setattr(history, name, struck)
"""


@pytest.mark.parametrize("cell", ["x = 7", "await asyncio.sleep(0)\nx = 7"], ids=["cell", "cell with await"])
@pytest.mark.parametrize("where", ["store_inputs", "store_output"])
def test_an_interrupt_of_ipythons_own_work_is_one_of_the_cell(pool: PoolState, where: str, cell: str) -> None:
    with notebook() as running:
        running.run(_STRIKE_ITSELF)
        running.run(f"asyncio.get_running_loop().call_soon(strike, {where!r}); None")
        assert running.run(cell).startswith("KeyboardInterrupt")
        assert running.run("1 + 1") == "2", "the kernel lives"


def test_a_second_interrupt_between_two_cells_does_so_too(pool: PoolState) -> None:
    with notebook() as running:
        _far_ahead(running)
        running.manager.interrupt_kernel()
        said = ""
        while _DROPPED[0] not in said:
            message = running.client.get_iopub_msg(timeout=60.0)
            if message["msg_type"] == "stream":
                said += message["content"]["text"]
        assert running.run("kept.tolist()") == "[0, 1, 2]"


def test_an_interrupt_of_an_idle_kernel_is_nothing(pool: PoolState) -> None:
    with notebook() as running:
        assert running.run(_COUNT) == "45.0\n"
        running.manager.interrupt_kernel()
        assert running.run("float(x[1])") == "1.0"


def test_a_kernel_that_died_is_explained_by_its_successor(pool: PoolState) -> None:
    async def die() -> str:
        manager = AsyncKernelManager(kernel_name="remote-gpu", config=PATIENT)
        await manager.start_kernel()
        client = manager.client()
        client.start_channels()
        try:
            await client.wait_for_ready(timeout=READY_SECONDS)
            client.execute("import cupy as cp; cp.zeros(1)[0].get()")  # a session is there, whoever has taken it
            wait_until(lambda: [one.state for one in sessions(pool)] == ["serving"])
            (taken,) = sessions(pool)
            client.execute("import os; os.kill(os.getpid(), 9)")
            while await manager.is_alive():
                await asyncio.sleep(0.05)
            await manager.restart_kernel(now=True)  # as Jupyter's restarter does, which does not say when
            assert sessions(pool)[0].epoch == 2
            await client.wait_for_ready(timeout=READY_SECONDS)
            assert sessions(pool)[0].session == taken.session
            message_id, told = client.execute("1"), ""
            while True:  # it may come in several pieces
                message = await client.get_iopub_msg(timeout=120)
                if message["parent_header"].get("msg_id") == message_id:
                    told += message["content"].get("text", "")
                    if message["content"].get("execution_state") == "idle":
                        return told
        finally:
            client.stop_channels()
            await manager.shutdown_kernel()
            manager.context.destroy(linger=0)

    told = asyncio.run(die())
    assert "was killed (SIGKILL)" in told
    wait_until(lambda: sessions(pool) == ())


def test_without_a_provisioner_the_kernel_takes_its_own_lease(
    pool: PoolState, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in VS Code, or under a Jupyter of another environment after `workbench install`."""
    install(prefix=tmp_path)
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "share" / "jupyter"))
    with notebook() as running:
        assert sessions(pool) == ()
        assert running.run(_COUNT) == "45.0\n"
        (taken,) = sessions(pool)
        running.restart()
        wait_until(lambda: sessions(pool) == ())
        assert running.run(_COUNT) == "45.0\n"
        assert sessions(pool)[0].session != taken.session
    wait_until(lambda: sessions(pool) == ())


def test_any_python_kernel_can_load_the_extension(pool: PoolState) -> None:
    with notebook("python3") as running:
        assert "ModuleNotFoundError" in running.run("import cupy")
        assert running.run("%load_ext workbench") == ""
        assert running.run(_COUNT) == "45.0\n"
        assert "Remote GPU" in running.run("%gpu status")
        running.run("del cp; import sys; [sys.modules.pop(m) for m in list(sys.modules) if m.split('.')[0] == 'cupy']")
        assert running.run("%unload_ext workbench") == ""
        assert "not found" in running.run("%gpu status")
        assert "ModuleNotFoundError" in running.run("import cupy")
    wait_until(lambda: sessions(pool) == ())


def test_a_program_started_from_a_cell_does_not_use_the_notebooks_session(pool: PoolState) -> None:
    with notebook() as running:
        running.run(_COUNT)
        code = "import os, subprocess, sys; print(subprocess.run(['env'], capture_output=True, text=True).stdout)"
        assert "GPU_WORKBENCH_TICKET" not in running.run(code)


def test_shutdown_in_the_middle_of_work_gives_the_lease_back(pool: PoolState) -> None:
    with notebook() as running:
        running.run("import cupy as cp\nx = cp.zeros(100_000)")
        running.start("while True: float(cp.sin(x)[0])")
    wait_until(lambda: sessions(pool) == ())
