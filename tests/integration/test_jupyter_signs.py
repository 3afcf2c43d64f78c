"""What a saved notebook keeps of waits and errors, and what the magics say while the device is busy."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from gpu_backend.pool import commands
from gpu_backend.pool.state import PoolState
from tests.integration.notebook_pool import warm_pool
from tests.integration.running_kernel import Notebook, notebook

pytestmark = pytest.mark.timeout(240)

#: An op that takes longer than a second on the CPU device, however fast the machine: one thread counts up to there.
SLOW = (
    "import cupy as cp\n"
    'slow = cp.RawKernel(\'extern "C" __global__ void slow(long long n, double* out) {'
    "double x = 1; for (long long i = 0; i < n; ++i) x = x * 1.0000001 + out[1]; out[0] = x; }', 'slow')\n"
    "out = cp.zeros(2)\n"
)
_COUNT = 3_000_000_000
#: Has no time pass for the line that tells of waits, however busy the machine, until it goes on.
_STILL = "from kernelproxy.client import current\ncurrent().signs._clock = lambda: 0.0"
_GOES_ON = "from time import monotonic\ncurrent().signs._clock = monotonic"


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PoolState]:
    with warm_pool(tmp_path_factory.mktemp("signs")) as own:
        yield own


def executed(*cells: str) -> Any:
    """Return a notebook of these cells, as it is saved after all have run."""
    made = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(cell) for cell in cells],
        metadata={"kernelspec": {"name": "remote-gpu", "display_name": "Remote GPU (CuPy)"}},
    )
    NotebookClient(made, timeout=180, iopub_timeout=180, allow_errors=True).execute()
    return made


def signs_of(cell: Any) -> list[str]:
    return [one["data"]["text/plain"] for one in cell.outputs if one["output_type"] == "display_data"]


def test_a_saved_notebook_has_the_last_state_of_each_cells_line(pool: PoolState) -> None:
    _, quick, _, compiled, waited = executed(
        _STILL,
        "import cupy as cp\nprint(float(cp.arange(10).sum()))",
        _GOES_ON,
        SLOW + f"slow((1,), (1,), ({_COUNT}, out))",
        f"slow((1,), (1,), ({_COUNT}, out))\nfloat(out[0])",
    ).cells
    assert signs_of(quick) == []
    (line,) = signs_of(compiled)
    assert re.fullmatch(r"Compiling and running slow took .* s · Cell In\[4\], line 4: slow\(.*", line)
    (line,) = signs_of(waited)
    assert re.fullmatch(r"The kernel slow took .* s · Cell In\[5\], line 1: slow\(.*", line)


def test_an_error_is_the_users_lines_and_the_message(pool: PoolState) -> None:
    first, second = executed(
        "import cupy as cp\ncp.concatenate([cp.zeros((2, 3)), cp.zeros((4, 5))])",
        "%gpu tracebacks full\n%tb",
    ).cells
    (error,) = first.outputs
    text = "\n".join(error["traceback"])
    assert "All arrays must have same shape" in text
    assert "kernelproxy" not in text
    assert len(text.splitlines()) < 12
    (error,) = second.outputs
    assert "gpu_backend/opstream/proof/registry.py" in "\n".join(error["traceback"])


def status(running: Notebook, field: str) -> str:
    return running.run(f"state = %gpu status\nprint(state.{field})").strip()


def test_status_is_told_while_the_device_is_busy(pool: PoolState) -> None:
    with notebook() as running:
        running.run(SLOW + "slow((1,), (1,), (1, out)); large = cp.zeros(50_000_000); float(large[0])")
        running.run(f"for _ in range(2): slow((1,), (1,), ({10 * _COUNT}, out))")
        # Many seconds: had it waited, nothing would be left to do.
        assert status(running, "work.what") == "The kernel slow"
        queued = int(status(running, "work.queued"))
        assert 1 <= queued <= 2
        assert "line 1: for _ in range(2)" in status(running, "work.place")
        text = running.run("%gpu status")
        assert len(text.splitlines()) <= 10
        assert "The kernel slow" in text
        assert "operation" in text
        assert "381.5 MiB used by your arrays" in text, "though the pool may not have heard of them yet"
        # An editor asks for documentation while somebody types.
        assert "the executor is busy" in running.run("print(cp.linalg.svd.__doc__)")


def test_an_object_of_the_device_is_not_described_by_its_class(pool: PoolState) -> None:
    with notebook() as running:
        said = running.run("import cupy as cp\nprint(cp.sin.__doc__)").strip()
        assert said == "Elementwise sine function." or (
            said.startswith("cupy.sin: the device of this session has no text about it; real CuPy, on a GPU, has.")
            and said.endswith("https://docs.cupy.dev/en/stable/reference/.")
        )
        assert "sum along a given axis" in running.run("print(cp.ndarray.sum.__doc__)")


def test_time_is_told_of_what_the_device_has_done(pool: PoolState) -> None:
    with notebook() as running:
        said = running.run(
            SLOW + "slow((1,), (1,), (1, out))\n%gpu timeit -n 1 -r 2 slow((1,), (1,), (30_000_000, out))"
        )
        assert "per loop (mean ± std. dev. of 2 runs, 1 loop each)" in said
        assert "on the device; the round trip that ends a run takes" in said
        code = "t = %gpu timeit -q -o -n 2 -r 3 slow((1,), (1,), (30_000_000, out))\n"
        code += "print(len(t.all_runs), t.loops, t.best <= t.average <= t.worst, min(t.device_runs) > 0)"
        assert running.run(code) == "3 2 True True\n"
        assert running.run("%%gpu timeit -n 1 -r 1 n = 3\nassert n == 3\nx = cp.ones(n)").count("per loop") == 1
        assert running.run("print('n' in dir())") == "False\n"
        assert "ZeroDivisionError" in running.run("%gpu timeit 1 / 0")
        assert "UsageError" in running.run("%gpu timeit")
        assert "UsageError" in running.run("%gpu timeit -n many x")
        assert "UsageError" in running.run("%%gpu status\nx")
        assert "UsageError" in running.run("%gpu tracebacks some")


def test_a_pool_that_is_down_is_said_to_be(pool: PoolState) -> None:
    """The last test of this file: the pool does not come back."""
    with notebook() as running:
        running.run("import cupy as cp\nx = cp.arange(10)\nfloat(x.sum())")
        commands.down(pool)
        assert "cannot be reached now" in running.run("print(cp.linalg.svd.__doc__)")
        assert "svd" in running.complete("cp.linalg.s")
        assert "PoolUnreachable" in running.run("x + 1")
        text = running.run("%gpu status")
        assert "docstring" not in text
        assert "busy" not in text, "nobody knows"
        assert "The pool is down: nobody listens at" in text
        assert "not connected" in text or "the executor does not answer" in text
