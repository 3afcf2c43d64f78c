"""JupyterLab in a browser, used as a person uses it: by clicking, typing and looking."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import Browser, ConsoleMessage, Locator, Page, expect

from tests.integration.running_lab import TOKEN

KERNEL = "Remote GPU (CuPy)"
_OWN_HOSTS = {"127.0.0.1", "localhost", "::1"}
_SECONDS = 1000.0

expect.set_options(timeout=90 * _SECONDS)


class LabPage:
    """One window. Notes every error on the console and every request that leaves this machine."""

    def __init__(self, page: Page, screenshots: Path) -> None:
        self.page = page
        self._screenshots = screenshots
        self.errors: list[str] = []
        self.foreign: list[str] = []
        page.set_default_timeout(90 * _SECONDS)
        page.on("console", self._note_console)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", lambda request: self._note_url(request.url))
        page.on("websocket", lambda socket: self._note_url(socket.url))

    def open(self, url: str, path: str = "") -> None:
        """Open JupyterLab, at ``path`` below its root."""
        self.page.goto(f"{url}lab{path}?token={TOKEN}&reset")
        self.page.wait_for_selector("#jupyterlab-splash", state="detached")

    def picture(self, name: str) -> None:
        """Keep a picture for people to look at."""
        self.page.screenshot(path=str(self._screenshots / f"{name}.png"))

    # --- the parts of the window --------------------------------------------------------------------------------------

    @property
    def card(self) -> Locator:
        """The kernel's card in the launcher."""
        return self.page.locator(f'.jp-LauncherCard[data-category="Notebook"][title="{KERNEL}"]')

    @property
    def notebook(self) -> Locator:
        """The notebook that is in front."""
        return self.page.locator(".jp-NotebookPanel:not(.lm-mod-hidden)")

    @property
    def dialog(self) -> Locator:
        """The dialog, if one is open."""
        return self.page.locator(".jp-Dialog")

    def cell(self, index: int) -> Locator:
        """A cell by its place; -1 is the last."""
        return self.notebook.locator(".jp-Notebook .jp-Cell").nth(index)

    def output(self, index: int) -> Locator:
        """What stands below a cell."""
        return self.cell(index).locator(".jp-Cell-outputWrapper")

    # --- what a person does -------------------------------------------------------------------------------------------

    def new_notebook(self) -> None:
        """Click the card, and wait until the kernel answers."""
        self.card.click()
        self.wait_ready()

    def wait_ready(self) -> None:
        """Wait for a kernel of ours that is idle. Before there is one the indicator says idle as well."""
        expect(self.notebook.locator(".jp-Toolbar-kernelName")).to_have_text(KERNEL)
        expect(self.page.locator("#jp-main-statusbar")).to_contain_text(f"{KERNEL} | Idle")
        self.wait_idle()

    def wait_idle(self, seconds: float = 120.0) -> None:
        """Wait until nothing runs."""
        self.indicator("idle").wait_for(timeout=seconds * _SECONDS)

    def expect_error(self, place: int, text: str) -> None:
        """Wait until a cell has ended by an error that says ``text``.

        The error is shown before the kernel is done with the cell, and what is run until then is aborted and says
        nothing: so nothing is typed before the kernel is idle.
        """
        expect(self.output(place)).to_contain_text(text)
        self.wait_idle()

    def indicator(self, status: str) -> Locator:
        """The kernel's circle in the toolbar, when it shows ``status``."""
        return self.notebook.locator(f'.jp-Notebook-ExecutionIndicator[data-status="{status}"]')

    def type_and_run(self, code: str) -> int:
        """Type ``code`` into the last cell and press Shift+Enter; return the cell's place. A new cell follows it."""
        place = self.notebook.locator(".jp-Notebook .jp-Cell").count() - 1
        self.cell(place).locator(".cm-content").click()
        self.page.keyboard.insert_text(code)
        self.page.keyboard.press("Shift+Enter")
        return place

    def menu(self, name: str, command: str) -> None:
        """Choose an entry of the menu bar."""
        self.page.locator(f'.lm-MenuBar-item:has-text("{name}")').first.click()
        self.page.locator(f'.lm-Menu-item[data-command="{command}"]').click()

    def _note_console(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.errors.append(message.text)

    def _note_url(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("data", "blob", "about") and parts.hostname not in _OWN_HOSTS:
            self.foreign.append(url)


@contextmanager
def lab_page(browser: Browser, screenshots: Path) -> Iterator[LabPage]:
    """Give a fresh window, that knows nothing of earlier ones."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    try:
        yield LabPage(context.new_page(), screenshots)
    finally:
        context.close()
