"""A tab that is closed while a cell runs, and the notebook opened again.

What the cell shows meanwhile goes to no page, and JupyterLab keeps none of it; the kernel, its names and arrays go on.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from gpu_backend.pool.settings import PoolSettings
from gpu_backend.pool.state import PoolState
from tests.browser.lab_page import lab_page
from tests.integration.held_op import HELD, let_go
from tests.integration.notebook_pool import cpu_pool, sessions, wait_until

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

_CELL = HELD + "slow((1,), (1,), (out,))\nkept = float(out[0])\nprint('computed', kept > 0)"


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PoolState]:
    with cpu_pool(tmp_path_factory.mktemp("tabs"), PoolSettings(devices="cpu")) as own:
        yield own


def test_a_cell_goes_on_while_its_tab_is_closed(
    chromium: Browser, pool: PoolState, url: str, notebooks: Path, screenshots: Path
) -> None:
    saved = notebooks / "Untitled.ipynb"
    with lab_page(chromium, screenshots) as lab:
        lab.open(url)
        lab.new_notebook()
        place = lab.type_and_run(_CELL)
        expect(lab.output(place)).to_contain_text("so far")
        lab.page.keyboard.press("Control+s")
        wait_until(lambda: "so far" in saved.read_text())
        (before,) = sessions(pool)
    with lab_page(chromium, screenshots) as lab:
        lab.open(url, "/tree/Untitled.ipynb")
        expect(lab.notebook.locator(".jp-Toolbar-kernelName")).to_have_text("Remote GPU (CuPy)")
        expect(lab.output(0)).to_contain_text("so far")
        expect(lab.notebook.locator(".jp-Notebook .jp-Cell")).to_have_count(2)  # the last one is where it goes on
        # What JupyterLab will never bring up to date does not look as if it went on.
        expect(lab.output(0).locator("progress:not([value])")).to_have_count(0)
        place = lab.type_and_run("print('kept', kept > 0, float(out.sum()) > 0)")
        let_go(pool)
        expect(lab.output(place)).to_contain_text("kept True True")
        place = lab.type_and_run("print('new', float(cp.arange(4).sum()))")
        expect(lab.output(place)).to_contain_text("new 6.0")
        lab.picture("tab-after")
        (after,) = sessions(pool)
        assert (after.session, after.epoch) == (before.session, 1)
        assert not lab.errors
