"""The gates on the data: every entry that lies in the catalogue, one by one and all together."""

from __future__ import annotations

import ast
import json
import tomllib
from html.parser import HTMLParser
from pathlib import Path

import jsonschema
import msgspec
import pytest
from pybtex.database import parse_string

import catalog
from catalog import rules
from catalog.carried import is_ready
from catalog.check import check_files
from catalog.citations import Citations
from catalog.commands import as_json
from catalog.entry import System
from catalog.loader import entries
from catalog.paths import ENTRIES, INSTALLATION
from catalog.render import html, terminal, text
from catalog.render.words import value_text
from catalog.show import system_document
from catalog.validation import validate

FILES = sorted(ENTRIES.glob("*.toml"))
SYSTEMS = list(entries().values())

#: The systems that the catalogue was begun for; none may be lost again.
REQUIRED = """fractos dgsf rcuda bitfusion orionx orion iadeep tgs reef gemini antman kubeshare gaiagpu paella muxflow
nvidia-mig nvidia-mps cuda-streams csur2017-survey dxpu osr2023-serverless-gpu cuda-green-contexts""".split()

VOID = {"br", "hr", "img", "meta", "link", "input", "path", "line", "circle", "polygon"}


def name_of(item: object) -> str:
    return item.stem if isinstance(item, Path) else str(getattr(item, "id", item))


every_file = pytest.mark.parametrize("path", FILES, ids=name_of)
every_system = pytest.mark.parametrize("system", SYSTEMS, ids=name_of)


@pytest.mark.parametrize("name", REQUIRED)
def test_the_system_is_in_the_catalogue(name: str) -> None:
    assert catalog.get(name).id == name


@every_file
def test_the_entry_keeps_every_rule(path: Path) -> None:
    assert check_files([path], alone=True) == []


def test_the_entries_keep_the_rules_between_them() -> None:
    """Relations, BibTeX keys, names, terms that nobody uses, policies and features in the code: both ways round."""
    assert rules.problems_between(SYSTEMS) == []


@every_file
def test_the_published_schema_accepts_the_entry(path: Path) -> None:
    schema = json.loads((INSTALLATION / "docs/reference/catalogue.schema.json").read_text())
    jsonschema.validate(tomllib.loads(path.read_text()), schema)


@every_file
def test_what_is_read_fast_is_what_was_validated(path: Path) -> None:
    validated = validate(tomllib.loads(path.read_text()), path.name)
    assert msgspec.to_builtins(entries()[path.stem]) == msgspec.to_builtins(validated)


@every_system
def test_every_claim_and_sentence_has_a_source(system: System) -> None:
    known = {source.id for source in system.sources}
    stated = [system.problem, *system.mechanism, *system.limitations, *system.evaluation, *system.tables]
    stated += [claim for claim in system.claims if claim.confidence != "unverified"]
    assert all(each.sources and set(each.sources) <= known for each in stated)


@every_system
def test_text_says_everything(system: System) -> None:
    shown = " ".join(str(system).split())
    sentences = [system.summary, system.problem.text, *(m.text for m in (*system.mechanism, *system.limitations))]
    sentences += [each.text for each in system.unverified] + [source.title for source in system.sources]
    sentences += [claim.quantity for claim in system.claims if len(claim.quantity) < 20]
    assert not [sentence for sentence in sentences if " ".join(sentence.split()) not in shown]


@every_system
def test_what_is_not_verified_is_marked_in_text_and_html(system: System) -> None:
    page = html.render(system_document(system))
    unverified = [each.text for each in system.unverified]
    unverified += [claim.quantity for claim in system.claims if claim.confidence == "unverified"]
    plain = text.render(system_document(system), 100_000)
    for sentence in unverified:
        line = next(line for line in plain.splitlines() if " ".join(sentence.split()) in " ".join(line.split()))
        assert line.startswith("- (unverified) ")
    assert page.count('<span class="mark doubt">unverified</span>') == len(unverified)


@every_system
def test_unverified_claims_stay_out_of_comparisons_and_lists(system: System) -> None:
    unverified = {f"{c.quantity}: {value_text(c)}" for c in system.claims if c.confidence == "unverified"}
    names = [name for name in catalog.fields() if name.startswith("claims.")] + ["results", "parameters"]
    compared = {value for name in names for value in catalog.fields()[name].values(system)}
    assert not unverified & compared
    assert all(item.claim.confidence != "unverified" for item in catalog.claims())


class Balance(HTMLParser):
    """Fails on a tag that is closed without being open, and collects what is still open at the end."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert tag in VOID or self.open.pop() == tag


@every_system
def test_html_is_whole_and_has_no_script(system: System) -> None:
    reader = Balance()
    page = html.render(system_document(system))
    reader.feed(page)
    assert reader.open == []
    assert "script" not in reader.tags
    assert "img" not in reader.tags


@every_system
def test_every_other_format_takes_it(system: System) -> None:
    terminal.render(system_document(system))
    assert json.loads(as_json(system))["id"] == system.id
    assert catalog.trial(system.id).records()[0]["system"] == system.id
    bundle = system._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/html"}


@every_system
def test_a_bibtex_parser_reads_its_citations(system: System) -> None:
    parsed = parse_string(Citations([system]).bibtex, "bibtex")
    assert set(parsed.entries) == {publication.key for publication in system.publications}
    for publication in system.publications:
        fields = parsed.entries[publication.key]
        assert fields.fields["year"] == str(publication.year)
        people = fields.persons["author"]
        assert len(people) == len(publication.authors or system.institutions)


@every_system
def test_its_cell_is_python(system: System) -> None:
    ast.parse(system.pool.cell)


@every_system
def test_what_is_available_has_a_cell_and_the_rest_says_so(system: System) -> None:
    trial = catalog.trial(system.id)
    assert bool(trial.cell) == is_ready(system)
    if not trial.cell:
        assert "planned" in str(trial) or "Not carried" in str(trial)


def test_no_two_systems_are_tried_by_one_cell() -> None:
    cells = [system.pool.cell.strip() for system in SYSTEMS if system.pool.cell]
    assert not {cell for cell in cells if cells.count(cell) > 1}


@every_system
def test_a_trial_says_that_no_figure_is_verified_only_where_none_is(system: System) -> None:
    verified = [each for each in system.claims if each.kind == "result" and each.confidence != "unverified"]
    said = " ".join(str(catalog.trial(system.id)).split())
    assert ("no figure that could be verified" in said) == (not verified and not system.pool.headline)


def test_a_system_without_a_headline_shows_its_first_verified_result() -> None:
    lithos = catalog.get("lithos")
    first = next(each for each in lithos.claims if each.kind == "result" and each.confidence != "unverified")
    assert not lithos.pool.headline
    assert first.quantity in " ".join(str(catalog.trial("lithos")).split())


def test_what_a_trial_calls_status_can_be_asked_for_by_that_name() -> None:
    asked = catalog.systems().filter(status="part")
    assert [each.id for each in asked] == [each.id for each in catalog.systems().filter(here="part")] != []
    assert {catalog.trial(each.id).status for each in asked} == {"part"}


def test_every_list_shows_every_system() -> None:
    page = str(catalog.systems())
    assert not [system.id for system in SYSTEMS if system.id not in page]


def test_every_pair_can_be_compared_on_every_field() -> None:
    comparison = catalog.compare([system.id for system in SYSTEMS], list(catalog.fields()))
    assert len(comparison) == len(catalog.fields())
    assert all(set(row) == {"field", *(s.id for s in SYSTEMS)} for row in comparison)
    reader = Balance()
    reader.feed(comparison._repr_html_())
    assert reader.open == []


def test_relations_are_known_on_both_sides() -> None:
    from catalog.relations import REVERSE, SYMMETRIC, related

    backwards = {**REVERSE, **{back: kind for kind, back in REVERSE.items()}, **{kind: kind for kind in SYMMETRIC}}
    for system in SYSTEMS:
        for edge in related(system.id):
            assert edge.source == system.id
            other = {(back.kind, back.target) for back in related(edge.target)}
            assert (backwards[edge.kind], system.id) in other
