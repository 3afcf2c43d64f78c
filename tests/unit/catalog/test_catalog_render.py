"""What is shown: text that fits, HTML that is escaped and themed, figures whose words do not overlap."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import catalog
from catalog.chart import Graph
from catalog.render import html, svg, text
from catalog.render.document import Bullets, Code, Document, Facts, Grid, Heading, Link, Mark, Paragraph, plain
from catalog.render.palette import COLOURS, shape
from catalog.render.scene import Dot, Scene, Words
from catalog.render.words import measured_text, number_text

mpl.use("Agg")

NASTY = '<script>alert("x")</script> & <b>'
#: JupyterLab's grounds in its light and its dark theme.
GROUNDS = ("#ffffff", "#111111")


def every_block(words: str) -> Document:
    linked = (words, Link(words, "https://example.org/?a=1&b=2"), Mark(words, "doubt"))
    return Document(
        words,
        (
            Heading(words),
            Paragraph(linked),
            Bullets((linked,)),
            Facts(((words, linked),)),
            Grid((words, words), ((words, linked),), words),
            Code(words),
        ),
    )


def test_what_is_shown_twice_is_worked_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A notebook is given text and HTML; a graph must not be laid out for each."""
    shown = catalog.graph()
    worked_out: list[Document] = []
    document = Graph.document
    monkeypatch.setattr(Graph, "document", lambda self: worked_out.append(document(self)) or worked_out[-1])
    bundle = shown._repr_mimebundle_()
    assert len(worked_out) == 1
    assert bundle == {"text/plain": str(shown), "text/html": shown._repr_html_()}


def test_everything_is_escaped() -> None:
    page = html.render(every_block(NASTY))
    assert "<script" not in page
    assert "<b>" not in page
    assert page.count("&lt;script&gt;") == page.count("alert(") == 20
    assert 'href="https://example.org/?a=1&amp;b=2"' in page


def test_figures_are_escaped() -> None:
    scene = Scene(NASTY, 100, 50, (Dot(1, 1, NASTY, NASTY, NASTY),), words=(Words(1, NASTY, "x"), Words(1, NASTY, "y")))
    assert "<script" not in svg.render(scene)


@pytest.mark.parametrize("address", ["javascript:alert(1)", "data:text/html,x", "", "//example.org"])
def test_only_web_addresses_become_links(address: str) -> None:
    assert "<a " not in html.render(Document("", (Paragraph((Link("words", address),)),)))


def test_the_style_uses_the_notebooks_colours_with_fall_backs() -> None:
    style = html.style()
    variables = style.count("var(--jp-")
    assert variables > 20
    assert style.count("var(--jp-content-font-color1,CanvasText)") >= 2
    assert all("," in part.split(")")[0] for part in style.split("var(--jp-")[1:])
    assert "/*" not in style
    assert "@import" not in style
    assert "url(" not in style


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("ground", GROUNDS)
@pytest.mark.parametrize("colour", COLOURS)
def test_figures_can_be_seen_on_light_and_dark_ground(colour: str, ground: str) -> None:
    """Contrast of at least 3:1, as WCAG 2 asks of graphics."""
    light, dark = sorted((luminance(colour), luminance(ground)), reverse=True)
    assert (light + 0.05) / (dark + 0.05) >= 3


def test_groups_differ_in_shape_as_well_as_in_colour() -> None:
    assert len({shape(number) for number in range(8)}) == len(COLOURS) == len(set(COLOURS)) == 8


@example("<" * 23, 20)
@given(st.text(alphabet="abc <&\n", max_size=60), st.integers(20, 120))
def test_text_keeps_every_word_and_its_width(words: str, width: int) -> None:
    page = text.render(every_block(words), width)
    for word in words.split():
        assert word in page or len(word) > 8
    longest = max(map(len, words.split()), default=0)
    # A word is never broken, and three stand side by side behind a label of up to sixty letters.
    most = max(width, 70 if longest <= 8 else 62 + 3 * longest)
    assert all(len(line) <= most for line in page.splitlines() if "example.org" not in line)


def test_a_table_is_as_wide_as_it_may_be() -> None:
    grid = Grid(("one", "two"), (("word " * 30, "more " * 30),))
    assert max(map(len, text.render_grid(grid, 60).splitlines())) <= 60
    assert plain(("a ", Link("b", "https://c.d"), " ", Mark("e"))) == "a b (e)"
    assert plain((Mark("e"),)) == "e"


@pytest.mark.parametrize(
    ("value", "shown"),
    [(15.0, "15"), (0.00025, "0.00025"), (5_242_880.0, "5 242 880"), (1.015, "1.015"), (2e4, "20 000")],
)
def test_numbers_read_well(value: float, shown: str) -> None:
    assert number_text(value) == shown


@pytest.mark.parametrize("scene", [catalog.timeline().scene(), catalog.graph().scene(), catalog.graph("tgs").scene()])
def test_labels_do_not_overlap_and_stay_inside(scene: Scene) -> None:
    placed = [dot.box for dot in scene.dots]
    for number, (left, top, right, bottom) in enumerate(placed):
        assert left >= 0
        assert right <= scene.width
        assert bottom <= scene.height
        for other_left, other_top, other_right, other_bottom in placed[:number]:
            apart = left >= other_right or other_left >= right or top >= other_bottom or other_top >= bottom
            assert apart


def test_the_timeline_has_every_system_once() -> None:
    timeline = catalog.timeline()
    assert len(timeline) == len(catalog.systems()) == len(timeline.scene().dots)
    years = [row["year"] for row in timeline.records()]
    assert years == sorted(years)
    assert timeline._repr_html_().count("<polygon") + timeline._repr_html_().count("<circle") >= len(timeline)


def test_the_graph_draws_the_relations_and_says_them_in_words() -> None:
    graph = catalog.graph("tgs")
    assert "antman" in {system.id for system in graph.systems}
    assert all("tgs" in (edge.source, edge.target) for edge in graph)
    assert len(graph.scene().lines) == len(graph)
    assert "compares itself with" in str(graph)
    only = catalog.graph(kinds=["compared-by"])
    assert {edge.kind for edge in only} == {"compares-with"}
    with pytest.raises(catalog.UnknownTerm, match=r"relations has no term 'build-on'; did you mean 'builds-on'\?"):
        catalog.graph(kinds=["build-on"])
    assert repr(Graph([catalog.get("tgs")])) == "<graph of 1 systems and 0 relations>"


def test_matplotlib_draws_both(tmp_path: Path) -> None:
    from matplotlib import pyplot

    axes = catalog.timeline().plot()
    assert {label.get_text() for label in axes.texts} >= {"TGS", "REEF", "2023"}
    pyplot.close(axes.figure)
    figure, mine = pyplot.subplots()
    assert catalog.graph("tgs").plot(mine) is mine
    pyplot.close(figure)
    catalog.graph("tgs").save(tmp_path / "graph.svg")
    assert "<svg" in (tmp_path / "graph.svg").read_text()
    with pytest.raises(ValueError, match="not supported"):
        catalog.timeline().save(tmp_path / "timeline.nonsense")


def test_without_matplotlib_the_way_out_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    with pytest.raises(ModuleNotFoundError, match="needs matplotlib, which is not installed here: pip install"):
        catalog.timeline().save(tmp_path / "x.svg")
    assert "<svg" in catalog.timeline()._repr_html_()


@pytest.mark.parametrize(
    ("value", "text"), [(8387.8058, "8390"), (-6.4879, "-6.49"), (96.875, "96.9"), (0.00731, "0.00731"), (0.0, "0")]
)
def test_measured_numbers_have_three_digits(value: float, text: str) -> None:
    assert measured_text(value) == text
