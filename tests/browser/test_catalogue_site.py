"""The catalogue's pages of the documentation in a real browser, in light and in dark.

Set ``CATALOGUE_SCREENSHOTS`` to a folder to keep what was seen.
"""

from __future__ import annotations

import functools
import http.server
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ElementHandle, Page, expect

from .test_catalogue import luminance

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

ROOT = Path(__file__).resolve().parents[2]
SCHEMES = ("light", "dark")
SECONDS = 1000.0
expect.set_options(timeout=90 * SECONDS)
PAGES = ("", "matrix/", "quantities/", "verdicts/", "who/", "timeline/", "systems/tgs/", "systems/lithos/")
GROUND = """element => {
  let at = element;
  while (at && /rgba\\(0, 0, 0, 0\\)|transparent/.test(getComputedStyle(at).backgroundColor)) at = at.parentElement;
  return getComputedStyle(at ?? document.body).backgroundColor;
}"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files and says nothing."""

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The documentation, built as it is published and served from its files alone; the address of the catalogue."""
    folder = tmp_path_factory.mktemp("site")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NO_MKDOCS_2_WARNING": "1"}
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(folder)]
    built = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/catalogue/"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(params=SCHEMES)
def page(request: pytest.FixtureRequest, chromium: Browser) -> Iterator[Page]:
    """A window of a reader who prefers light or dark; at the end, no complaint and no foreign host."""
    complaints: list[str] = []
    hosts: set[str] = set()
    context = chromium.new_context(color_scheme=request.param, viewport={"width": 1360, "height": 1000})
    shown = context.new_page()
    shown.set_default_timeout(90 * SECONDS)
    shown.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    shown.on("pageerror", lambda error: complaints.append(str(error)))
    shown.on("request", lambda asked: hosts.add(asked.url.split("/")[2].partition(":")[0]))
    yield shown
    context.close()
    assert complaints == []
    assert hosts == {"127.0.0.1"}


def contrast(element: ElementHandle) -> float:
    ink = luminance(element.evaluate("element => getComputedStyle(element).color"))
    ground = luminance(element.evaluate(GROUND))
    lighter, darker = sorted((ink, ground), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("path", PAGES)
def test_it_can_be_read(page: Page, site: str, path: str, request: pytest.FixtureRequest) -> None:
    page.goto(site + path)
    scheme = request.node.callspec.params["page"]
    ground = luminance(page.evaluate("() => getComputedStyle(document.body).backgroundColor"))
    assert (ground > 0.5) == (scheme == "light")
    for element in page.query_selector_all(".gpu-catalogue :is(p, li, dd, td, tbody th)")[:200]:
        assert contrast(element) >= 4.5, element.inner_text()[:60]
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth"), "only tables scroll sideways"
    folder = os.environ.get("CATALOGUE_SCREENSHOTS")
    if folder:
        name = path.strip("/").replace("/", "-") or "index"
        page.screenshot(path=Path(folder) / f"site-{name}-{scheme}.png")


def test_tables_of_features_fit_a_window_of_1300_pixels(page: Page, site: str) -> None:
    page.set_viewport_size({"width": 1300, "height": 1000})
    page.goto(f"{site}matrix/")
    too_wide = "found => found.filter(each => each.scrollWidth > each.clientWidth).map(each => each.innerText)"
    assert page.locator(".gpu-catalogue .scroll").evaluate_all(too_wide) == []


def test_facets_narrow_down_and_the_address_keeps_them(page: Page, site: str) -> None:
    page.goto(site)
    rows = page.locator("table[data-facets] tbody tr:visible")
    everything = rows.count()
    assert everything > 50
    page.select_option("[data-facet=memory]", "oversubscription")
    narrowed = rows.count()
    assert 0 < narrowed < everything
    expect(page.locator(".facets output")).to_have_text(f"{narrowed} of {everything} systems")
    page.fill("[data-words]", "unified memory")
    assert 0 < rows.count() < narrowed
    assert "memory=oversubscription" in page.url
    page.reload()
    expect(page.locator("[data-facet=memory]")).to_have_value("oversubscription")
    expect(page.locator(".facets output")).to_have_text(re.compile(r"^[1-9]\d? of "))
    rows.first.locator("a").click()
    expect(page.locator("h2#what-it-claims")).to_be_visible()


def test_without_a_script_every_system_is_there(chromium: Browser, site: str) -> None:
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.set_default_timeout(90 * SECONDS)
    page.goto(site)
    assert page.locator("table[data-facets] tbody tr:visible").count() > 50
    assert page.locator(".facets").is_hidden()
    context.close()


def test_figures_are_drawn_and_downloads_come(page: Page, site: str) -> None:
    page.goto(f"{site}quantities/")
    assert page.locator("svg circle, svg polygon").count() > 60
    page.goto(f"{site}matrix/")
    assert page.locator("td.yes").count() > 500
    names = page.query_selector_all(".matrix tbody th")
    assert all((box := name.bounding_box()) and 120 < box["width"] < 300 for name in names), "names can be read"
    page.goto(f"{site}data/")
    links = page.locator("article table a")
    assert links.count() >= 6
    for link in links.all():
        answer = page.request.get(f"{site}data/{link.get_attribute('href')}")
        assert answer.ok
        assert len(answer.body()) > 1000
