"""A person and JupyterLab: choose the kernel, run an example, interrupt, restart, read a refusal."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from gpu_backend.pool import commands
from tests.browser.lab_page import KERNEL, LabPage, lab_page
from tests.integration.notebook_pool import sessions, wait_until
from tests.integration.running_lab import Lab

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]


def test_from_the_card_to_a_number(chromium: Browser, jupyter: Lab, screenshots: Path) -> None:
    with lab_page(chromium, screenshots) as lab:
        lab.open(jupyter.url)
        expect(lab.card).to_be_visible()
        expect(lab.card.locator("img, svg").first).to_be_visible()
        lab.picture("launcher")
        lab.new_notebook()
        place = lab.type_and_run("import cupy as cp\nprint(float(cp.arange(10).sum()))")
        expect(lab.output(place)).to_contain_text("45.0")
        assert sessions(jupyter.pool)[0].label.endswith(".ipynb"), "the lease says which notebook has it"

        place = lab.type_and_run("%gpu status")
        expect(lab.output(place).locator("table")).to_contain_text("by your arrays")
        lab.picture("status")

        interrupt(lab)
        restart(lab)
        end_kernel(lab, jupyter)
        assert_clean(lab)


def interrupt(lab: LabPage) -> None:
    """Interrupt a cell that would run for ever, by the toolbar's button."""
    place = lab.type_and_run("x = cp.zeros(100_000)\nprint('begun', flush=True)\nwhile True: x = cp.sin(x)")
    expect(lab.output(place)).to_contain_text("begun")  # the kernel is busy before the cell's own code runs
    lab.notebook.locator('[data-jp-item-name="interrupt"] jp-button').click()
    lab.expect_error(place, "KeyboardInterrupt")
    lab.picture("interrupted")
    place = lab.type_and_run("float(cp.ones(3).sum())")
    expect(lab.output(place)).to_contain_text("3.0")


def restart(lab: LabPage) -> None:
    """Restart by the menu: the arrays are gone, the session goes on in its next epoch."""
    lab.menu("Kernel", "kernelmenu:restart")
    lab.dialog.locator(".jp-mod-accept").click()
    expect(lab.dialog).to_have_count(0)
    place = lab.type_and_run("x")
    lab.expect_error(place, "NameError")
    lab.wait_ready()
    place = lab.type_and_run("state = %gpu status\nprint('epoch', state.epoch)")
    expect(lab.output(place)).to_contain_text("epoch 2")


def end_kernel(lab: LabPage, jupyter: Lab) -> None:
    """Shut the kernel down by the menu: the pool has its place back."""
    lab.menu("Kernel", "kernelmenu:shutdown")
    wait_until(lambda: sessions(jupyter.pool) == ())


def test_an_example_shows_numbers_and_a_plot(chromium: Browser, jupyter: Lab, screenshots: Path) -> None:
    with lab_page(chromium, screenshots) as lab:
        lab.open(jupyter.url, "/tree/examples/03_heat_equation.ipynb")
        lab.wait_ready()
        lab.menu("Run", "runmenu:run-all")
        expect(lab.notebook.locator(".jp-OutputArea-output img").first).to_be_visible(timeout=120_000)
        lab.wait_idle()
        text = " ".join(lab.notebook.locator(".jp-OutputArea-output pre").all_inner_texts())
        assert re.search(r"\d\.\d+", text), "an example prints numbers"
        assert "Error" not in text
        lab.notebook.locator(".jp-OutputArea-output img").first.scroll_into_view_if_needed()
        size = lab.notebook.locator(".jp-OutputArea-output img").first.bounding_box()
        assert size is not None
        assert size["width"] > 200
        lab.picture("example")
        end_kernel(lab, jupyter)
        assert_clean(lab)


def test_a_pool_that_is_away_is_told_in_a_dialog(chromium: Browser, jupyter: Lab, screenshots: Path) -> None:
    """The last test of this file: the pool does not come back."""
    with lab_page(chromium, screenshots) as lab:
        lab.open(jupyter.url)
        commands.down(jupyter.pool)
        lab.card.click()
        expect(lab.dialog).to_contain_text("The GPU pool cannot be reached", timeout=90_000)
        expect(lab.dialog).to_contain_text("workbench")
        lab.picture("refusal")
        assert not lab.foreign


def assert_clean(lab: LabPage) -> None:
    assert not lab.errors
    assert not lab.foreign, KERNEL
