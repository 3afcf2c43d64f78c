"""The first hour of somebody who has never seen us, in one notebook: what they do, and what they read of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from gpu_backend.pool import commands
from gpu_backend.pool.settings import PoolSettings
from gpu_backend.pool.state import PoolState
from tests.browser.lab_page import LabPage, lab_page
from tests.integration.held_op import HELD, let_go
from tests.integration.notebook_pool import wait_until, warm_pool

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

#: Nothing of the cell before is left to be done once this one says that it has begun: else it would be the second
#: interrupt that strikes here, which drops what it asked for as well.
_TRANSFER = (
    "host = cp.zeros(500_000_000, 'i1')\nfirst = int(host[0])\nprint('begun', flush=True)\n"
    "while True: copy = host.get()"
)


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PoolState]:
    # Longer than an executor is kept from the processor: one that is killed cannot say why the session ended.
    settings = PoolSettings(devices="cpu", stop_seconds=30.0)
    with pytest.MonkeyPatch.context() as patch:
        # Threads of OpenBLAS wait for each other at each step of a small decomposition: where others want the
        # processors it takes a hundred times as long as when %timeit has found out how often to do it.
        patch.setenv("OPENBLAS_NUM_THREADS", "1")
        with warm_pool(tmp_path_factory.mktemp("hour"), settings) as own:
            yield own


def test_the_first_hour(chromium: Browser, pool: PoolState, url: str, notebooks: Path, screenshots: Path) -> None:
    with lab_page(chromium, screenshots) as lab:
        lab.open(url)
        lab.new_notebook()
        first_results(lab)
        an_interrupt_keeps_what_was_counted(lab)
        a_failure_that_was_caught_stays_caught(lab)
        an_error_is_short_and_can_be_long(lab)
        a_large_download_is_interrupted(lab)
        timing(lab)
        status_while_the_device_is_busy(lab, pool)
        the_pool_goes_and_comes_back(lab, pool)
        lab.picture("first-hour")
        assert not lab.errors
        assert not lab.foreign
        lab.menu("File", "docmanager:save")
        expect(lab.dialog).to_have_count(0)
        wait_until(lambda: "it is over" in json.dumps(saved_cells(notebooks / "Untitled.ipynb")))
    what_the_saved_notebook_keeps(notebooks / "Untitled.ipynb")


def first_results(lab: LabPage) -> None:
    place = lab.type_and_run(
        "import cupy as cp\nx = cp.arange(10.0)\nfor _ in range(300): print(x)\nprint('all printed')"
    )
    expect(lab.output(place)).to_contain_text("all printed")


def an_interrupt_keeps_what_was_counted(lab: LabPage) -> None:
    """Arrays agree with the counters beside them, however far the loop had come."""
    place = lab.type_and_run("x, n = cp.zeros(1000), 0\nprint('begun', flush=True)\nwhile True: x = x + 1; n += 1")
    stop(lab, place)
    # The interrupt may fall between the two statements: one apart, then, and never the thousands that were queued.
    place = lab.type_and_run("n > 0 and float(x.min()) == float(x.max()) and float(x[0]) - n in (0, 1)")
    expect(lab.output(place)).to_contain_text("True")


def a_failure_that_was_caught_stays_caught(lab: LabPage) -> None:
    """What fails on the device is raised once; the innocent cell after it runs."""
    place = lab.type_and_run(
        "bad = cp.RawKernel('extern \"C\" __global__ void bad(double* o) { undeclared; }', 'bad')\n"
        "try:\n    bad((1,), (1,), (x,))\nexcept cp.cuda.compiler.CompileException as error:\n"
        "    print('caught', type(error).__name__)\n"
        "try:\n    cp.zeros(10**14)\nexcept cp.cuda.memory.OutOfMemoryError as error:\n    print(error)"
    )
    expect(lab.output(place)).to_contain_text("caught CompileException")
    expect(lab.output(place)).to_contain_text("Out of memory allocating")
    place = lab.type_and_run("print('innocent', float(cp.ones(5).sum()))")
    expect(lab.output(place)).to_contain_text("innocent 5.0")


def an_error_is_short_and_can_be_long(lab: LabPage) -> None:
    place = lab.type_and_run("cp.concatenate([cp.zeros((2, 3)), cp.zeros((4, 5))])")
    lab.expect_error(place, "All arrays must have same shape")
    expect(lab.output(place)).not_to_contain_text("opstream")
    expect(lab.output(place)).to_contain_text("%gpu tracebacks full")
    place = lab.type_and_run("%gpu tracebacks full\n%tb")
    expect(lab.output(place)).to_contain_text("opstream/proof/registry.py")
    place = lab.type_and_run("%gpu tracebacks short\n1 / 0")
    lab.expect_error(place, "ZeroDivisionError")
    expect(lab.output(place)).not_to_contain_text("%gpu tracebacks full")


def a_large_download_is_interrupted(lab: LabPage) -> None:
    """The interrupt ends the cell, wherever in the copy it falls, and the session is as good as before."""
    for _ in range(3):
        place = lab.type_and_run(_TRANSFER)
        stop(lab, place)
        expect(lab.output(place)).not_to_contain_text("Exception ignored")
    place = lab.type_and_run("print(len(host), int(host[:10].get().sum()))")
    expect(lab.output(place)).to_contain_text("500000000 0")
    lab.type_and_run("del host")


def timing(lab: LabPage) -> None:
    place = lab.type_and_run("%gpu timeit -n 2 -r 2 x + 1")
    expect(lab.output(place)).to_contain_text("per loop (mean ± std. dev. of 2 runs, 2 loops each)")
    expect(lab.output(place)).to_contain_text("on the device")
    place = lab.type_and_run("small = cp.eye(64)\n%timeit -r 1 cp.linalg.svd(small)\nprint('timed')")
    expect(lab.output(place)).to_contain_text("timed")


def status_while_the_device_is_busy(lab: LabPage, pool: PoolState) -> None:
    """It is told at once; who does not want to wait stops, and what was launched is still computed."""
    lab.type_and_run(HELD + "slow((1,), (1,), (out,))\nfloat(out[0])")
    let_go(pool)
    lab.type_and_run("slow((1,), (1,), (out,)); lost = out + 1")
    place = lab.type_and_run("%gpu status")
    expect(lab.output(place).locator("table")).to_contain_text("The kernel slow")
    expect(lab.output(place).locator("table")).to_contain_text("Cell In[")
    expect(lab.output(place).locator("table")).not_to_contain_text("kernelproxy")
    place = lab.type_and_run("print('begun', flush=True)\nfloat(lost[0])")
    expect(lab.output(place).locator("[role=status]")).to_contain_text("so far")
    stop(lab, place)
    let_go(pool)
    place = lab.type_and_run("print('computed', float(lost[1]))")
    expect(lab.output(place)).to_contain_text("computed 1.0")


def the_pool_goes_and_comes_back(lab: LabPage, pool: PoolState) -> None:
    """Stopped under the notebook, and started again: nobody restarts a kernel."""
    commands.down(pool)
    place = lab.type_and_run("float(cp.ones(3).sum())")
    lab.expect_error(place, "The pool was stopped by its operator.")
    place = lab.type_and_run("%gpu status")
    expect(lab.output(place)).to_contain_text("The pool is down")
    commands.up(pool)
    place = lab.type_and_run("float(cp.ones(3).sum())")
    lab.expect_error(place, "SessionLost")
    place = lab.type_and_run("print(float(cp.ones(3).sum()), 'it is over')")
    expect(lab.output(place)).to_contain_text("3.0 it is over")


def saved_cells(path: Path) -> list[dict[str, Any]]:
    """Return the cells with code of a notebook that is saved; none while JupyterLab is just writing it."""
    try:
        return [one for one in json.loads(path.read_text())["cells"] if one["cell_type"] == "code"]
    except ValueError:
        return []


def what_the_saved_notebook_keeps(path: Path) -> None:
    """Lines that were kept up to date stand in it once, in their last state."""
    outputs = [one for cell in saved_cells(path) for one in cell["outputs"]]
    lines = ["".join(one["data"].get("text/plain", "")) for one in outputs if one["output_type"] == "display_data"]
    assert lines
    assert not [one for one in lines if "so far" in one]
    assert not [one for one in lines if "kernelproxy" in one]
    said = json.dumps(outputs)
    assert "Exception ignored" not in said


def stop(lab: LabPage, place: int) -> None:
    """Press the stop button once a cell that says so has begun; wait until it has ended."""
    expect(lab.output(place)).to_contain_text("begun")
    lab.notebook.locator('[data-jp-item-name="interrupt"] jp-button').click()
    lab.expect_error(place, "KeyboardInterrupt")
