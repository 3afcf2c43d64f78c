"""Sessions whose notebooks are gone while their executors are in the middle of an op, and hear nobody."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
from jupyter_client.blocking import BlockingKernelClient

from gpu_backend.pool.settings import PoolSettings
from gpu_backend.pool.state import PoolState
from tests.faults.notebook import Notebook
from tests.integration.held_op import HELD, let_go
from tests.integration.notebook_pool import cpu_pool, sessions, wait_until, warm_pool
from tests.integration.running_lab import TOKEN
from tests.integration.test_jupyter_signs import SLOW

pytestmark = pytest.mark.timeout(240)

#: More than any processor counts to in a day, in native code that hears nothing.
_LOOPS = 10**15
_WITHOUT_END = f"slow((1,), (1,), ({_LOOPS}, out)); current_session().flush()"
_COMPILED = SLOW + "slow((1,), (1,), (1, out)); float(out[1])"


class Server:
    """A Jupyter server without its page, and the kernels that it was asked for."""

    def __init__(self, process: subprocess.Popen[bytes], runtime: Path) -> None:
        self.process = process
        self._runtime = runtime
        self._file = runtime / f"jpserver-{process.pid}.json"
        wait_until(self._is_heard)

    def _is_heard(self) -> bool:
        try:
            self._ask("api")
        except (OSError, ValueError):  # it writes its file before it listens, and not at once
            return False
        return True

    def _ask(self, path: str, body: bytes | None = None) -> bytes:
        url = str(json.loads(self._file.read_text())["url"])
        with urlopen(Request(url + path, body, {"Authorization": f"token {TOKEN}"}), timeout=90) as answer:
            return bytes(answer.read())

    @contextmanager
    def kernel(self) -> Iterator[BlockingKernelClient]:
        """Have a new kernel, which is the server's to end."""
        made = json.loads(self._ask("api/kernels", json.dumps({"name": "remote-gpu"}).encode()))
        client = BlockingKernelClient(connection_file=str(self._runtime / f"kernel-{made['id']}.json"))
        client.load_connection_file()
        client.start_channels(hb=False)  # on a busy machine it takes a late beat for a death
        try:
            client.wait_for_ready(timeout=120)
            yield client
        finally:
            client.stop_channels()


@contextmanager
def server() -> Iterator[Server]:
    command = [sys.executable, "-m", "jupyter_server", "--no-browser", "--ServerApp.port=0", "--allow-root"]
    variables = {**os.environ, "JUPYTER_TOKEN": TOKEN}
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=variables) as process:
        try:
            yield Server(process, Path(os.environ["JUPYTER_RUNTIME_DIR"]))
        finally:
            process.kill()


def said(client: BlockingKernelClient, cell: str) -> str:
    """Run ``cell`` and return what it prints."""
    printed: list[str] = []

    def hear(message: dict[str, dict[str, str]]) -> None:
        printed.append(message["content"].get("text", ""))

    client.execute_interactive(cell, timeout=120, output_hook=hear)
    return "".join(printed).strip()


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[PoolState]:
    """A pool whose sessions would keep their places for longer than a test lasts."""
    with warm_pool(tmp_path, PoolSettings(devices="cpu", stop_seconds=0.5)) as own:
        yield own


def test_an_executor_says_that_its_notebook_came_before_it_is_in_an_op(pool: PoolState) -> None:
    """Else a session whose first op takes long would be freed as one that nobody came for."""
    with Notebook(pool.root / "client.toml") as mine:
        mine.begin(f"{HELD}slow((1,), (1,), (out,)); float(out[0])")
        wait_until(lambda: any(one.moved_bytes for one in sessions(pool)))
        let_go(pool)
        assert mine.finish().value == "1e+65"


@pytest.mark.parametrize("cell", [f"{_COMPILED}\n{_WITHOUT_END}", "import cupy as cp; float(cp.ones(3).sum())", "pass"])
def test_a_killed_jupyter_server_frees_the_places_of_its_kernels(pool: PoolState, cell: str) -> None:
    """In the middle of an op, between two, and where the session was taken and never used."""
    before = "from kernelproxy.sessions import current_session\n"
    with server() as jupyter, ExitStack() as kernels:
        client = kernels.enter_context(jupyter.kernel())
        while cell == "pass" and not sessions(pool):  # a pool that was not quick enough has left it to the kernel
            client = kernels.enter_context(jupyter.kernel())
        assert said(client, f"{before}{cell}\nprint('done')") == "done"
        assert len(sessions(pool)) == 1
        jupyter.process.kill()
        wait_until(lambda: not sessions(pool))


def test_a_killed_notebook_frees_its_place_when_its_lease_is_over_and_one_that_waits_keeps_its_own(
    tmp_path: Path,
) -> None:
    """Both executors are in the middle of an op; the one that waits began before the other was killed."""
    wanted = PoolSettings(devices="cpu", cpu_devices=2, stop_seconds=0.5, lease_seconds=15.0)
    with cpu_pool(tmp_path, wanted) as pool:
        config = pool.root / "client.toml"
        with Notebook(config) as waits, Notebook(config) as killed:
            for one in (waits, killed):
                assert one.value(_COMPILED) == "0.0"
            waits.begin(f"slow((1,), (1,), ({_LOOPS}, out)); float(out[0])")
            assert not killed.run(_WITHOUT_END).error
            held = {one.session for one in sessions(pool)}
            assert len(held) == 2
            killed.kill()
            wait_until(lambda: len(sessions(pool)) == 1, 180.0)
            assert {one.session for one in sessions(pool)} < held
            waits.kill()
