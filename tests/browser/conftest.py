"""Debian's Chromium, and a `workbench lab` for it to look at."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from gpu_backend.pool.state import PoolState
from tests.browser.lab_server import lab_server
from tests.integration.notebook_pool import environment
from tests.integration.running_lab import Lab, lab


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """A headless Chromium. Without one the tests are left out, except in CI, where that is a failure."""
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        message = "There is no Chromium here. On Debian: apt-get install chromium."
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    with sync_playwright() as playwright:
        # Chromium's sandbox needs privileges that containers do not have; only our own pages are opened.
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def jupyter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A pool and JupyterLab, with the examples, as `workbench lab` starts them in an empty home."""
    root = tmp_path_factory.mktemp("browser")
    with environment(root) as patch:
        patch.setenv("JUPYTERLAB_SETTINGS_DIR", str(root / "settings"))
        with lab() as running:
            yield running


@pytest.fixture(scope="module")
def notebooks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a module's notebooks are."""
    return tmp_path_factory.mktemp("notebooks")


@pytest.fixture(scope="module")
def url(pool: PoolState, notebooks: Path) -> Iterator[str]:
    """JupyterLab on the module's own ``pool``, in that pool's home, as `workbench lab` starts it."""
    with lab_server(notebooks, Path(os.environ["HOME"]) / "settings") as address:
        yield address


@pytest.fixture(scope="session")
def screenshots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pictures go: WORKBENCH_SCREENSHOTS, else a directory that pytest keeps for a while."""
    named = os.environ.get("WORKBENCH_SCREENSHOTS")
    place = Path(named) if named else tmp_path_factory.mktemp("screenshots")
    place.mkdir(parents=True, exist_ok=True)
    return place
