"""The line of a cell that waits, as it is put into the notebook."""

from __future__ import annotations

from typing import Any

import pytest

from workbench import notice
from workbench.notice import CellNotice


class Page:
    """Keeps what is shown in one place."""

    def __init__(self) -> None:
        self.html: list[str] = []

    def update(self, shown: dict[str, Any], **_: object) -> None:
        self.html.append(shown["text/html"])


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> Page:
    page = Page()

    def display(shown: dict[str, Any], **_: object) -> Page:
        page.update(shown)
        return page

    monkeypatch.setattr(notice, "display", display)
    return page


def test_a_bar_is_there_where_a_part_is_known(page: Page) -> None:
    CellNotice().show("Download: 1 s so far", 0.25)
    assert 'max="1" value="0.250"></progress>' in page.html[-1]


def test_what_has_no_known_part_moves_only_when_it_is_told(page: Page) -> None:
    """A browser moves a bar without a value by itself, also in a notebook that was saved in the middle."""
    line = CellNotice()
    for seconds in range(1, 6):
        line.show(f"Running svd: {seconds} s so far")
    assert not [one for one in page.html if "<progress" in one]
    dials = [next(sign for sign in "◐◓◑◒" if sign in one) for one in page.html]
    assert dials == [*"◓◑◒◐◓"]


def test_the_last_state_is_text_alone(page: Page) -> None:
    line = CellNotice()
    line.show("Running <svd>: 1 s so far")
    line.close("Running <svd> took 1.5 s")
    assert "&lt;svd&gt; took 1.5 s" in page.html[-1]
    assert "role" not in page.html[-1]
