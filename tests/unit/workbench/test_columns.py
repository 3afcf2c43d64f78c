"""Tables in a terminal of 80 columns: as wide as that. Nothing of them is cut away, however narrow the terminal is."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console, RenderableType

from gpu_backend.wire.views import UsageRow, UsageView
from workbench.commands.pool_usage import table_of_usage
from workbench.display import Columns, Facts, Section

LONG = "/home/ada/of-the-physics-group/.local/state/gpu-workbench/pool/a-path-that-is-longer-than-all-that-is-free"


def shown(table: RenderableType, width: int = 80) -> list[str]:
    out = StringIO()
    Console(file=out, width=width, soft_wrap=True).print(table)  # as commands print
    return out.getvalue().splitlines()


def usage(by: str) -> UsageView:
    row = UsageRow(
        "ada (removed 2026-11-23)", "physics", "da87b76d8e5bb288", "notes/heat.ipynb", "2026-11-23", 123, 0.000204,
        1 << 50, 1 << 50, 1023 << 40, "elementwise",
    )  # fmt: skip
    return UsageView(1, "root", by, "", (row,), ())


@pytest.mark.parametrize("by", ["user", "group", "session", "notebook", "day", "class"])
def test_what_was_used(by: str) -> None:
    lines = shown(table_of_usage(usage(by)))
    assert max(map(len, lines)) <= 80
    assert "…" not in "".join(lines)
    assert any("0.000204 s" in line for line in lines), "a figure stays with its unit"
    assert any("da87b76d8e5bb288" in line for line in lines) == (by == "session"), "what is copied stays whole"


def test_a_text_that_is_too_long_goes_on_in_the_next_line() -> None:
    table = Columns("what", "where")
    table.add_row("settings", LONG)
    lines = shown(table)
    assert max(map(len, lines)) <= 80
    assert "".join(line[len("settings") + 2 :].strip() for line in lines[1:]) == LONG


@pytest.mark.parametrize("width", [1, 20, 40, 60, 79, 80])
@pytest.mark.parametrize("by", ["user", "session", "class"])
def test_nothing_is_cut_away_in_any_terminal(by: str, width: int) -> None:
    narrow, wide = ("".join(shown(table_of_usage(usage(by)), one)) for one in (width, 1000))
    assert sorted(narrow.replace(" ", "")) == sorted(wide.replace(" ", ""))
    for whole in ("0.000204 s", "da87b76d8e5bb288"):
        assert (whole in narrow) == (whole in wide), whole


def test_so_does_a_fact() -> None:
    class Place(Facts):
        def sections(self) -> list[Section]:
            return [Section("Files", (("settings", LONG),))]

    lines = shown(Place())
    assert LONG in "".join(line[len("  settings") + 2 :].strip() for line in lines[2:])
