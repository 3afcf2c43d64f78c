"""An executor with nothing to do asks itself the notebook's last question again, and the notebook notices nothing."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from gpu_backend.node import launcher
from gpu_backend.pool.settings import PoolSettings
from tests.faults.notebook import Notebook
from tests.integration.notebook_pool import wait_until, warm_pool

COMMAND = (sys.executable, str(Path(__file__).with_name("rehearsing_executor.py")))
COUNTED = "s = kernelproxy.current_session().counters; (s.ops, s.round_trips)"


def asked(notebook: Notebook) -> int:
    """Return how often contents were asked for, by whomever: the executor's log says it."""
    return Path(f"/proc/{notebook.executor_pid()}/fd/2").read_text().count(" counted asked\n")


def opened(pid: int) -> set[str]:
    """Return the files that a process has open of what the system tells."""
    return {link for one in Path(f"/proc/{pid}/fd").iterdir() if (link := os.readlink(one)).startswith("/proc/")}


def test_the_last_question_is_asked_again_and_the_notebook_notices_nothing(tmp_path: Path) -> None:
    settings = PoolSettings(devices="cpu", executor_command=COMMAND)
    with (
        warm_pool(tmp_path, settings) as state,
        Notebook(state.root / "client.toml", GPU_WORKBENCH_HOST_MIRROR="off") as one,
    ):
        warm = [found for each in launcher.directories(str(state.runtime)) if (found := launcher.process_in(each))]
        before = opened(warm[0].pid)
        one.run("import kernelproxy; x = cp.arange(8.0)")
        reads = 0

        def is_asked_more_often_than_here() -> bool:
            nonlocal reads
            reads += 1
            assert one.value("float(x[3])") == "3.0"
            return asked(one) > reads + 20

        wait_until(is_asked_more_often_than_here)
        ops, trips = eval(one.value(COUNTED))
        assert (ops, trips) == (1 + reads, reads)
        assert one.value("x[3] = 7.0; float(x[3])") == "7.0"
        refused = one.run("cp.linalg.cholesky(cp.zeros((2, 3))); float(x[3])")
        assert refused.error == "LinAlgError", refused
        assert one.value("float(x[3])") == "7.0"
        assert opened(one.executor_pid()) == before, "what it looks at is open before a notebook comes"
