"""What a person sees while they wait, of an error, and of the pool: on the page itself, in both themes."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from gpu_backend.pool.settings import PoolSettings
from gpu_backend.pool.state import PoolState
from tests.browser.lab_page import LabPage, lab_page
from tests.browser.lab_server import set_up
from tests.integration.held_op import HELD, halted, let_go
from tests.integration.notebook_pool import cpu_pool, sessions, wait_until
from tests.integration.test_jupyter_waiting import free, taken

pytestmark = [pytest.mark.browser, pytest.mark.timeout(400)]

THEMES = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}
#: A cell's line that is being kept up to date.
_LINE = "[role=status]"
#: Where the text of an element begins, pixels.
_LEFT = """element => {
    const range = document.createRange();
    range.selectNodeContents(element);
    return range.getBoundingClientRect().left;
}"""
#: Whether the line that is being kept up to date, made narrow, has its text in one column. It may be replaced any time.
_IS_ONE_COLUMN = """() => {
    const line = document.querySelector(".jp-OutputArea [role=status]");
    const text = line && line.querySelector("span:last-child");
    if (!text) return false;
    line.style.width = "24em";
    const range = document.createRange();
    range.selectNodeContents(text);
    const lefts = [...range.getClientRects()].map(one => one.left);
    return lefts.length > 1 && Math.max(...lefts) - Math.min(...lefts) < 1.5;
}"""


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PoolState]:
    """A pool with one place."""
    root = tmp_path_factory.mktemp("signs")
    with cpu_pool(root, PoolSettings(devices="cpu", sessions_per_device=1, max_sessions_per_user=0)) as own:
        yield own


@pytest.mark.parametrize("theme", THEMES)
def test_a_person_sees_what_goes_on(
    chromium: Browser, pool: PoolState, url: str, notebooks: Path, screenshots: Path, theme: str
) -> None:
    set_up(Path(os.environ["HOME"]) / "settings", "apputils-extension/themes", theme=THEMES[theme])
    with lab_page(chromium, screenshots) as lab:
        lab.open(url)
        expect(lab.page.locator(f'body[data-jp-theme-name="{THEMES[theme]}"]')).to_have_count(1)
        lab.new_notebook()
        progress(lab, pool, theme)
        transfer(lab, pool, notebooks, theme)
        error(lab, theme)
        status(lab, pool, theme)
        lab.menu("Kernel", "kernelmenu:shutdown")
        with taken(pool) as other:
            lab.open(url)
            queue(lab, pool, other, theme)
            lab.menu("Kernel", "kernelmenu:shutdown")
        wait_until(lambda: not sessions(pool))  # the next one needs the place, and a page that is closed asks no more
        assert not lab.errors
        assert not lab.foreign


def progress(lab: LabPage, pool: PoolState, theme: str) -> None:
    """One line says what is waited for, and stays with its last state."""
    place = lab.type_and_run(HELD + "slow((1,), (1,), (out,))\nfloat(out[0])")
    line = lab.output(place).locator(_LINE)
    expect(line).to_contain_text("Compiling and running slow:")
    expect(line).to_contain_text("so far")
    lab.picture(f"waiting-{theme}")
    let_go(pool)
    expect(lab.output(place)).to_contain_text("Compiling and running slow took")
    expect(line).to_have_count(0)
    kept, value = (lab.output(place).get_by_text(text).first for text in ("Compiling and running slow took", "e+"))
    expect(value).to_be_visible()
    assert abs(kept.evaluate(_LEFT) - value.evaluate(_LEFT)) < 1.5


def transfer(lab: LabPage, pool: PoolState, notebooks: Path, theme: str) -> None:
    """A bar says how much of a large array has come."""
    enough = notebooks / "enough"
    place = lab.type_and_run(
        "import os\nx = cp.zeros(200_000_000, 'i1')\nprint('copying', flush=True)\n"
        f"while not os.path.exists('{enough.name}'): host = x.get()\n"
        "del x"
    )
    expect(lab.output(place)).to_contain_text("copying")
    line = lab.output(place).locator(_LINE)
    with halted(pool):
        expect(line).to_contain_text(re.compile(r"Download: \d+ s so far · [\d.]+ \w+ of 190\.7 MiB"))
        assert 0 <= float(line.locator("progress").get_attribute("value") or -1) <= 1
        lab.picture(f"transfer-{theme}")
        enough.touch()  # not before: the copy that was under way may have been through already, and no other begun
    expect(lab.output(place)).to_contain_text("Download took")
    lab.wait_idle()
    enough.unlink()


def error(lab: LabPage, theme: str) -> None:
    """An error is the user's lines and the message."""
    place = lab.type_and_run(
        "def join(a, b):\n    return cp.concatenate([a, b])\n\njoin(cp.zeros((2, 3)), cp.zeros((4, 5)))"
    )
    lab.expect_error(place, "All arrays must have same shape")
    expect(lab.output(place)).to_contain_text("return cp.concatenate([a, b])")
    expect(lab.output(place)).not_to_contain_text("kernelproxy")
    lab.picture(f"error-{theme}")


def status(lab: LabPage, pool: PoolState, theme: str) -> None:
    """The status is there while the device is busy."""
    lab.type_and_run("for _ in range(2): slow((1,), (1,), (out,))")
    place = lab.type_and_run("%gpu status")
    table = lab.output(place).locator("table")
    expect(table).to_contain_text("The kernel slow for")
    expect(table).to_contain_text("operation")
    assert table.locator("tr").count() <= 9
    table.scroll_into_view_if_needed()
    lab.picture(f"status-{theme}")
    place = lab.type_and_run("%gpu status --all")
    expect(lab.output(place).locator("table")).to_contain_text("computed by")
    lab.output(place).locator("table").scroll_into_view_if_needed()
    lab.picture(f"status-all-{theme}")
    for _ in range(2):
        let_go(pool)


def queue(lab: LabPage, pool: PoolState, other: str, theme: str) -> None:
    """A full pool: place and wait in one line, and at the end how long it took."""
    lab.new_notebook()
    place = lab.type_and_run("import cupy as cp\nprint(float(cp.arange(10).sum()))")
    expect(lab.output(place).locator(_LINE).first).to_contain_text("number 1 of 1 in the queue")
    lab.picture(f"queue-{theme}")
    lab.page.wait_for_function(_IS_ONE_COLUMN)
    free(pool, other)
    expect(lab.output(place)).to_contain_text("A place in the pool was free after")
    expect(lab.output(place)).to_contain_text("45.0")
    lab.picture(f"queue-over-{theme}")
