"""Everything an entry says, on one page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from catalog import carriers
from catalog.carried import carrier_title, how_label, status_mark
from catalog.entry import System
from catalog.evidence import Claim, Statement
from catalog.field import fields
from catalog.loader import entries
from catalog.relations import KINDS, related
from catalog.render import html, text
from catalog.render.document import Block, Bullets, Document, Facts, Grid, Heading, Inline, Link, Mark, Paragraph, Run
from catalog.render.words import address, conditions_text, confidence_mark, doubt_mark, joined, source_links, value_text
from catalog.rules import placements
from catalog.verdict import HEADS, cells, verdicts_of

__all__ = ["as_bundle", "carrier_run", "system_document"]

_PARTLY_READ = "The paper itself was not read: this rests on the sources at the end, each with what was read of it."


def system_document(system: System) -> Document:
    """Return the page of one system, with every sentence's sources and doubts."""
    blocks = [
        *_head(system),
        *_statements(system, "Problem", [system.problem]),
        *_statements(system, "How it works", system.mechanism),
        *_classification(system),
        *_claims(system),
        *_found_here(system),
        *_tables(system),
        *_evaluation(system),
        *_statements(system, "Limits", system.limitations),
        *_relations(system),
        *_corrections(system),
        *_unverified(system),
        *_pool(system),
        *_sources(system),
    ]
    rest = system.title.removeprefix(f"{system.name}: ")
    return Document(system.name if rest == system.name else f"{system.name}: {rest}", tuple(blocks))


def as_bundle(system: System) -> dict[str, str]:
    """Return the page in the forms from which a notebook chooses."""
    document = system_document(system)
    return {"text/plain": text.render(document), "text/html": html.render(document)}


def carrier_run(name: str) -> Run:
    """Return a carrier with its status as the code has it."""
    there = carriers.available(name)
    return (f"{carrier_title(name)} ", Mark("available", "good") if there else Mark("planned", "waiting"))


def _head(system: System) -> Iterator[Block]:
    yield Paragraph(system.summary)
    known = fields()
    year = f"{system.year} ({system.year_note})" if system.year_note else str(system.year)
    rows: list[tuple[str, Run]] = [("year", year)]
    for name in ("kind", "venue", "institutions", "authors", "aliases", "lists"):
        run = known[name].show(system)
        rows += [(known[name].label, run)] if run else []
    if system.disambiguation:
        rows.append(("not the same", system.disambiguation))
    rows.append(("code", _code(system)))
    rows += [("links", joined(((Link(link.label or link.kind, link.url),) for link in system.links), ", "))] * bool(
        system.links
    )
    yield Facts(tuple(rows))
    if not system.full_text_read and system.kind in {"research-system", "survey"}:
        yield Paragraph(_PARTLY_READ, "doubt")


def _code(system: System) -> Run:
    code = system.code
    words = [code.availability.replace("-", " "), code.licence, code.detail]
    words.append(f"last activity {code.last_activity}" if code.last_activity else "")
    known = "; ".join(word for word in words if word)
    return (known, *source_links(system, code.sources), *doubt_mark(code.confidence))


def _statements(system: System, title: str, statements: Iterable[Statement]) -> Iterator[Block]:
    items = tuple(_statement(system, each) for each in statements)
    if items:
        yield Heading(title)
        yield Bullets(items) if len(items) > 1 else Paragraph(items[0])


def _statement(system: System, statement: Statement) -> tuple[Inline, ...]:
    note = f" ({statement.note.rstrip('.')})" if statement.note else ""
    return (statement.text + note, *source_links(system, statement.sources), *doubt_mark(statement.confidence))


def _classification(system: System) -> Iterator[Block]:
    known = fields()
    rows = tuple(
        (known[name].label, known[name].show(system), source_links(system, placement.sources))
        for name, placement in placements(system)
    )
    yield Heading("Where it stands")
    yield Grid(("dimension", "place", "sources"), rows)


def _claims(system: System) -> Iterator[Block]:
    design = {"parameter", "limit", "requirement"}
    for title, kinds in (("What it claims", {"result"}), ("Constants and limits", design)):
        found = [claim for claim in system.claims if claim.kind in kinds and claim.confidence != "unverified"]
        if found:
            yield Heading(title)
            yield claim_grid(system, found)


def _found_here(system: System) -> Iterator[Block]:
    found = verdicts_of(system)
    if found:
        yield Heading("What was found here")
        yield Grid(HEADS, tuple(cells(verdict) for verdict in found))


def claim_grid(system: System, claims: Iterable[Claim]) -> Grid:
    """Return claims as a table with conditions, sources and confidence."""
    rows = tuple(
        (
            claim.quantity,
            value_text(claim),
            conditions_text(claim.conditions) + (f" ({claim.note.rstrip('.')})" if claim.note else ""),
            source_links(system, claim.sources) or "none",
            (confidence_mark(claim.confidence),),
        )
        for claim in claims
    )
    return Grid(("quantity", "value", "conditions", "sources", "confidence"), rows)


def _tables(system: System) -> Iterator[Block]:
    for table in system.tables:
        yield Heading(table.title)
        yield Grid(tuple(table.columns), tuple(tuple(row) for row in table.rows))
        yield Paragraph((table.note, *source_links(system, table.sources), *doubt_mark(table.confidence)))


def _evaluation(system: System) -> Iterator[Block]:
    for each in system.evaluation:
        yield Heading("Evaluated on")
        yield Facts(
            (
                ("hardware", each.hardware or "not stated in what was read"),
                ("workloads", "; ".join(each.workloads) or "not stated in what was read"),
                ("baselines", "; ".join(each.baselines) or "not stated in what was read"),
                ("read in", (each.note, *source_links(system, each.sources), *doubt_mark(each.confidence))),
            )
        )


def _relations(system: System) -> Iterator[Block]:
    known = entries()
    items: list[Run] = []
    for edge in related(system.id):
        note = f": {edge.note}" if edge.note else ""
        items.append((f"{KINDS[edge.kind]} {known[edge.target].name}{note}", *doubt_mark(edge.confidence)))
    if items:
        yield Heading("Relations")
        yield Bullets(tuple(items))


def _corrections(system: System) -> Iterator[Block]:
    if system.corrections:
        yield Heading("Corrections to the lists")
        yield Bullets(
            tuple(
                (f"{each.stated_in} says “{each.says}”. {each.correct}", *source_links(system, each.sources))
                for each in system.corrections
            )
        )


def _unverified(system: System) -> Iterator[Block]:
    items = [f"{each.text} (seen in: {each.seen_in})" for each in system.unverified]
    for claim in system.claims:
        if claim.confidence == "unverified":
            held = conditions_text(claim.conditions)
            items.append(f"{claim.quantity}: {value_text(claim)}{f' ({held})' if held else ''}. {claim.note}")
    if items:
        yield Heading("Not verified: do not take these for facts")
        yield Bullets(tuple((Mark("unverified", "doubt"), f" {item}") for item in items), "doubt")


def _pool(system: System) -> Iterator[Block]:
    yield Heading("In this pool")
    yield Facts(
        (
            ("status", (status_mark(system),)),
            ("carried by", joined((carrier_run(name) for name in system.pool.carriers), ", ") or "nothing"),
            (how_label(system), system.pool.how),
            ("more", f"%catalog try {system.id}"),
        )
    )


def _sources(system: System) -> Iterator[Block]:
    rows: list[tuple[Run, ...]] = []
    for source in system.sources:
        where = address(source)
        title: Run = (Link(source.title, where),) if where else source.title
        kind = source.kind.replace("-", " ") + (f", {source.revision}" if source.revision else "")
        rows.append((source.id, title, kind, source.read))
    yield Heading("Sources")
    yield Bullets(
        tuple((f"[{plain_id}] ", *joined([title]), f" ({kind}); read: {read}") for plain_id, title, kind, read in rows)
    )
