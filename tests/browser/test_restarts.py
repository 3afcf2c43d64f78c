"""Who begins anew in the middle of an op."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from gpu_backend.pool import commands
from gpu_backend.pool.settings import PoolSettings
from gpu_backend.pool.state import PoolState
from tests.browser.lab_page import LabPage, lab_page
from tests.integration.notebook_pool import cpu_pool, sessions, wait_until
from tests.integration.test_jupyter_signs import SLOW

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

#: More than any processor counts to in a day.
_ENDLESS = 10**15


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PoolState]:
    with cpu_pool(tmp_path_factory.mktemp("goings"), PoolSettings(devices="cpu", stop_seconds=0.5)) as own:
        yield own


def begin(lab: LabPage, loops: int) -> int:
    """Have the device in the middle of an op, and the notebook wait for it."""
    lab.type_and_run(SLOW + "slow((1,), (1,), (1, out))\nfloat(out[0])")
    lab.wait_idle()
    place = lab.type_and_run(f"slow((1,), (1,), ({loops}, out))\nfloat(out[0])")
    expect(lab.output(place)).to_contain_text("so far")
    return place


def test_a_kernel_is_restarted_in_the_middle_of_an_op(
    chromium: Browser, pool: PoolState, url: str, screenshots: Path
) -> None:
    with lab_page(chromium, screenshots) as lab:
        lab.open(url)
        lab.new_notebook()
        begin(lab, _ENDLESS)
        lab.menu("Kernel", "kernelmenu:restart")
        lab.dialog.locator(".jp-mod-accept").click()
        expect(lab.dialog).to_have_count(0)
        place = lab.type_and_run("import cupy as cp\nprint('anew', float(cp.ones(3).sum()))")
        expect(lab.output(place)).to_contain_text("anew 3.0")
        assert [one.epoch for one in sessions(pool)] == [2]
        lab.menu("Kernel", "kernelmenu:shutdown")
        wait_until(lambda: not sessions(pool))
        assert not lab.errors


def test_a_kernel_that_is_restarted_while_the_pool_is_down_says_so_in_its_first_cell(
    chromium: Browser, pool: PoolState, url: str, screenshots: Path
) -> None:
    """Of a restart that fails JupyterLab says nothing at all."""
    with lab_page(chromium, screenshots) as lab:
        lab.open(url)
        lab.new_notebook()
        place = lab.type_and_run("import cupy as cp\nx = cp.arange(3.0)\nfloat(x.sum())")
        expect(lab.output(place)).to_contain_text("3.0")  # before it has begun the kernel is idle as well
        lab.wait_idle()
        commands.down(pool)
        lab.menu("Kernel", "kernelmenu:restart")
        lab.dialog.locator(".jp-mod-accept").click()
        expect(lab.dialog).to_have_count(0)
        place = lab.type_and_run("import cupy as cp\nprint('host', 1 + 1)\nfloat(cp.ones(3).sum())")
        expect(lab.output(place)).to_contain_text("host 2")
        lab.expect_error(place, "PoolUnreachable: Nobody answers at")
        lab.picture("restarted-without-a-pool")
        commands.up(pool)
        place = lab.type_and_run("print('anew', float(cp.ones(3).sum()))")
        expect(lab.output(place)).to_contain_text("anew 3.0")
        lab.menu("Kernel", "kernelmenu:shutdown")
        wait_until(lambda: not sessions(pool))
        assert not lab.errors
