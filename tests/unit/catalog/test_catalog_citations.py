"""BibTeX that a BibTeX parser accepts, whatever a title holds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from pybtex.database import parse_string

import catalog
from catalog.citations import bibtex_entry, escaped
from catalog.entry import Publication

PRINTABLE = st.text(alphabet=st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=30)


def test_the_whole_catalogue_is_one_bibliography() -> None:
    everything = catalog.cite()
    parsed = parse_string(everything.bibtex, "bibtex")
    assert len(parsed.entries) == len(everything) >= len(catalog.systems())
    assert list(parsed.entries) == [publication.key for publication in everything]


def test_a_paper() -> None:
    entry = parse_string(catalog.cite("tgs").bibtex, "bibtex").entries["wu2023tgs"]
    assert entry.type == "inproceedings"
    assert str(entry.persons["author"][0]) == "Wu, Bingyang"
    assert entry.fields["pages"] == "69--85"
    assert entry.fields["month"] == "April"
    assert entry.fields["title"] == ("{Transparent GPU Sharing in Container Clouds for Deep Learning Workloads}")
    assert "Bingyang Wu, Zili Zhang" in str(catalog.cite("tgs"))


def test_an_institution_is_a_corporate_author() -> None:
    entry = parse_string(catalog.cite("nvidia-mps").bibtex, "bibtex").entries
    assert all(str(next(iter(each.persons["author"]))) == "NVIDIA" for each in entry.values())


@given(PRINTABLE, PRINTABLE)
def test_any_title_and_container_survive(title: str, container: str) -> None:
    publication = Publication(key="k", type="article", title=title, year=2020, container=container, url="https://a.b")
    parsed = parse_string(bibtex_entry(publication, catalog.get("tgs")), "bibtex").entries["k"]
    assert parsed.fields["title"] == f"{{{escaped(title)}}}"
    assert parsed.fields["journal"] == escaped(container)


def test_what_bibtex_takes_for_its_own_isescaped() -> None:
    assert escaped("100 % of R&D_#1 $") == r"100 \% of R\&D\_\#1 \$"
    assert escaped("{x} ~ ^ \\") == (
        r"\textbraceleft{}x\textbraceright{} \textasciitilde{} \textasciicircum{} \textbackslash{}"
    )
