"""The generated pages and downloads: whole, true to the entries, readable by the programs that they are for."""

from __future__ import annotations

import csv
import io
import json
import re
from html import escape

import pytest
import yaml
from pybtex.database import parse_string

import catalog
from catalog.paths import INSTALLATION
from catalog.render.html import fragment
from catalog.site import facets, matrix
from catalog.site.pages import markdown, pages

from .test_catalog_entries import Balance

FILES = pages()
SYSTEMS = catalog.systems()


def test_every_system_has_a_page_that_says_all_and_is_linked() -> None:
    first = FILES["catalogue/index.md"]
    for system in SYSTEMS:
        page = FILES[f"catalogue/systems/{system.id}.md"]
        assert page.startswith("# ")
        assert "## Sources" in page
        assert page.count('<span class="mark doubt">unverified</span>') == len(system.unverified) + sum(
            claim.confidence == "unverified" for claim in system.claims
        )
        assert f'href="systems/{system.id}/"' in first
        assert f'href="../systems/{system.id}/"' in FILES["catalogue/matrix.md"]


@pytest.mark.parametrize("path", [path for path in FILES if path.endswith(".md")])
def test_pages_are_whole_and_links_between_systems_lead_somewhere(path: str) -> None:
    reader = Balance()
    reader.feed(re.sub(r"^#.*$", "", FILES[path], flags=re.MULTILINE))
    assert reader.open == []
    for name in re.findall(r'href="(?:\.\./)?(?:systems/)?([a-z0-9-]+)/"', FILES[path]):
        assert f"catalogue/systems/{name}.md" in FILES


def test_headings_are_markdown_and_what_is_between_is_html() -> None:
    system = catalog.get("tgs")
    page = FILES["catalogue/systems/tgs.md"]
    assert "\n## What it claims\n" in page
    assert "<h4>" not in page
    assert "<style>" not in page, "the style is a file of its own"
    assert "\n## What was found here\n" in page
    assert escape(system.summary) in page
    assert fragment([]) == '<div class="gpu-catalogue"></div>'
    assert markdown("T", "", []) == "# T\n"


def test_the_matrix_says_yes_no_and_unknown() -> None:
    place = catalog.get("tgs").classification.sharing
    assert (matrix.mark(place, "temporal"), matrix.mark(place, "spatial")) == ("✓", "✗")
    unknown = next(
        s.classification.fault_isolation for s in SYSTEMS if s.classification.fault_isolation.terms == ["not-stated"]
    )
    assert matrix.mark(unknown, "process") == "?"
    low = next(s.classification.sharing for s in SYSTEMS if s.classification.sharing.confidence == "low")
    assert matrix.mark(low, low.terms[0]) == "(✓)"


@pytest.mark.parametrize("name", facets.FACETS)
def test_each_facet_offers_what_occurs(name: str) -> None:
    page = FILES["catalogue/index.md"]
    offered = re.search(rf'<select data-facet="{name}">(.*?)</select>', page)
    assert offered
    values = set(re.findall(r'value="([^"]+)"', offered[1]))
    rows = re.findall(rf'<tr[^>]* data-{name.replace("_", "-")}="([^"]*)"', page)
    assert len(rows) == len(SYSTEMS)
    assert values == {value for row in rows for value in row.split()}


def test_the_downloads_are_what_they_say() -> None:
    rows = list(csv.DictReader(io.StringIO(FILES["catalogue/data/systems.csv"])))
    assert [row["id"] for row in rows] == list(SYSTEMS.ids)
    claims = list(csv.DictReader(io.StringIO(FILES["catalogue/data/claims.csv"])))
    assert len(claims) == len(catalog.claims())
    assert "unverified" not in {claim["confidence"] for claim in claims}
    verdicts = list(csv.DictReader(io.StringIO(FILES["catalogue/data/verdicts.csv"])))
    assert [row["verdict"] for row in verdicts] == [each.outcome for each in catalog.verdicts()]
    assert all(row["measured_hardware"] and row["measured_commit"] for row in verdicts if row["measured_value"])
    assert [entry["id"] for entry in json.loads(FILES["catalogue/data/catalogue.json"])] == list(SYSTEMS.ids)
    keys = set(parse_string(FILES["catalogue/data/catalogue.bib"], "bibtex").entries)
    cited = set(re.findall(r"\\cite\{(.*?)\}", FILES["catalogue/data/systems.tex"]))
    assert cited == {system.publications[0].key for system in SYSTEMS} <= keys
    body = FILES["catalogue/data/systems.tex"].split("\\endhead\n")[1].split("\\bottomrule")[0]
    assert all(len(re.findall(r"(?<!\\)&", line)) == 7 for line in body.splitlines())


def test_the_citation_file_is_whole() -> None:
    cited = yaml.safe_load((INSTALLATION / "CITATION.cff").read_text(encoding="utf-8"))
    assert cited["cff-version"] == "1.2.0"
    assert {"message", "title", "authors", "license", "abstract", "type"} <= set(cited)
    assert cited["license"] == "BSD-3-Clause"
