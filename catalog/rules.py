"""What must hold inside an entry and between entries, beyond its shape.

Pure functions from entries to sentences. Every gate of the catalogue that concerns the data is here, so that a
contributor reads the same sentence from ``python -m catalog.check`` as from the tests.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from catalog import carriers
from catalog.amounts import within
from catalog.entry import Classification, Placement, System
from catalog.errors import CatalogError
from catalog.evidence import Claim, Source
from catalog.figures import FIGURES
from catalog.figures import names as figure_names
from catalog.nearest import did_you_mean
from catalog.relations import SYMMETRIC
from catalog.taxonomy import EVERYWHERE, Taxonomy, taxonomy

__all__ = ["orphan_terms", "placements", "problems_between", "problems_of"]

_NEEDS_SOURCE = frozenset({"builds-on", "compares-with", "follow-up-of"})
_MONTHS = frozenset("jan feb mar apr may jun jul aug sep oct nov dec".split())


class _Sourced(Protocol):
    """What refers to sources, with a confidence or without."""

    @property
    def sources(self) -> list[str]: ...


def problems_of(system: System) -> list[str]:
    """Return what is wrong inside one entry, one sentence each."""
    vocabulary = taxonomy()
    return [
        *_sources(system),
        *_classification(system.classification, vocabulary),
        *itertools.chain.from_iterable(_claim(claim, vocabulary) for claim in system.claims),
        *_bibliography(system),
        *_tables(system),
        *_pool(system),
        *_verdicts(system),
        *_recorded(system),
    ]


def problems_between(systems: Sequence[System]) -> list[str]:
    """Return what is wrong between entries: unknown targets, contradicting relations, keys used twice."""
    ids = [system.id for system in systems]
    problems = [f"{name}.toml: the id {name!r} is used twice" for name, n in Counter(ids).items() if n > 1]
    keys = Counter(publication.key for system in systems for publication in system.publications)
    problems += [f"the BibTeX key {key!r} is used {n} times" for key, n in keys.items() if n > 1]
    names = Counter(name.casefold() for system in systems for name in {system.name, *system.aliases})
    problems += [f"the name {name!r} belongs to {n} systems" for name, n in names.items() if n > 1]
    problems += _relations(systems)
    problems += _claimed(systems)
    problems += [f"taxonomy.toml: {term} is used by no entry" for term in orphan_terms(systems)]
    problems += _carriers(systems)
    return problems


def _carriers(systems: Iterable[System]) -> Iterator[str]:
    """Hold the entries against the code, both ways round."""
    named = {carrier for system in systems for carrier in system.pool.carriers}
    for policy in carriers.policies():
        if f"policy:{policy}" not in named:
            yield f"the policy {policy!r} is in the code but no entry names it in pool.carriers"
        if policy in carriers.planned_policies():
            yield f"carriers.toml: the policy {policy!r} is in the code; take it out of 'planned'"
    for policy in carriers.planned_policies():
        if f"policy:{policy}" not in named:
            yield f"carriers.toml: the planned policy {policy!r} is named by no entry"
    for name, feature in carriers.features().items():
        if f"feature:{name}" not in named:
            yield f"carriers.toml: the feature {name!r} is named by no entry"
        missing = carriers.missing_parts(feature)
        if missing and not feature.is_planned:
            yield f"carriers.toml: the code has no {' and no '.join(missing)}, which is to provide the feature {name!r}"
        if feature.is_planned and not missing:
            yield f"carriers.toml: the feature {name!r} is in the code; take 'planned' out"


def orphan_terms(systems: Iterable[System]) -> list[str]:
    """Return the terms, measures and units of the taxonomy that no entry uses."""
    vocabulary = taxonomy()
    known = {f"{d.id}.{term}" for d in vocabulary.dimensions.values() for term in d.terms}
    known |= {f"measures.{name}" for name in vocabulary.measures} | {f"units.{name}" for name in vocabulary.units}
    used: set[str] = set()
    for system in systems:
        used |= {f"{name}.{term}" for name, placement in placements(system) for term in placement.terms}
        used |= {f"measures.{claim.measure}" for claim in system.claims}
        used |= {f"units.{claim.unit}" for claim in system.claims}
    return sorted(known - used)


def placements(system: System) -> Iterator[tuple[str, Placement]]:
    """Yield ``(dimension, placement)`` in the order of :class:`~catalog.entry.Classification`."""
    for field in dataclasses.fields(Classification):
        yield field.name, getattr(system.classification, field.name)


def _sources(system: System) -> Iterator[str]:
    known = [source.id for source in system.sources]
    for name, count in Counter(known).items():
        if count > 1:
            yield f"the source {name!r} is declared {count} times"
    used: set[str] = set()
    nowhere = {source.id for source in system.sources if not (source.url or source.doi)}
    for what, item, needed in _references(system):
        used.update(item.sources)
        if needed and not item.sources:
            yield f"{what} names no source"
        for name in item.sources:
            if name not in known:
                yield f"{what} names the source {name!r}, which is not declared{did_you_mean(name, known)}"
        if item.sources and nowhere.issuperset(item.sources) and getattr(item, "confidence", "low") != "low":
            yield f"{what} rests on nothing that has an address, so its confidence can be 'low' at most"
    for source in system.sources:
        if source.id not in used:
            yield f"nothing refers to the source {source.id!r}"
        if not _has_address(source):
            yield f"the source {source.id!r} has neither url nor doi"


def _has_address(source: Source) -> bool:
    return bool(source.url or source.doi or source.kind == "third-party")


def _references(system: System) -> Iterator[tuple[str, _Sourced, bool]]:
    """Yield everything in the entry that refers to sources: a name for it, itself, whether a source is required."""
    yield "problem", system.problem, True
    for list_name in ("mechanism", "limitations", "evaluation", "tables", "corrections"):
        for number, item in enumerate(getattr(system, list_name), 1):
            yield f"{list_name} {number}", item, True
    for name, placement in placements(system):
        yield f"classification.{name}", placement, not set(placement.terms) <= EVERYWHERE
    for claim in system.claims:
        yield f"the claim {claim.id!r}", claim, claim.confidence != "unverified"
    yield "code", system.code, system.code.availability not in {"none-found", "not-applicable"}
    for relation in system.relations:
        yield f"the relation to {relation.target!r}", relation, relation.kind in _NEEDS_SOURCE


def _classification(classification: Classification, vocabulary: Taxonomy) -> Iterator[str]:
    for field in dataclasses.fields(classification):
        placement: Placement = getattr(classification, field.name)
        allowed = vocabulary.dimensions[field.name].terms
        if not placement.terms:
            yield f"classification.{field.name} has no term; use 'not-stated' if nothing says"
        for term in placement.terms:
            if term not in allowed and term not in EVERYWHERE:
                hint = did_you_mean(term, [*allowed, *EVERYWHERE])
                yield f"{term!r} is no term of the dimension {field.name!r}{hint}"


def _claim(claim: Claim, vocabulary: Taxonomy) -> Iterator[str]:
    what = f"the claim {claim.id!r}"
    if (claim.value is None) == (not claim.expression):
        yield f"{what} needs either a value or an expression"
    if (claim.value is None) != (not claim.unit):
        yield f"{what} needs a unit exactly if it has a value"
    if claim.unit and claim.unit not in vocabulary.units:
        yield f"{what} has the unknown unit {claim.unit!r}{did_you_mean(claim.unit, vocabulary.units)}"
    if claim.measure not in vocabulary.measures:
        yield f"{what} has the unknown measure {claim.measure!r}{did_you_mean(claim.measure, vocabulary.measures)}"
    if (claim.value_to is not None) != (claim.bound in {"between", "from-to"}):
        yield f"{what} needs value_to exactly if its bound is 'between' or 'from-to'"
    if claim.confidence == "unverified" and not claim.note:
        yield f"{what} is unverified and must say in its note where it was seen"
    if claim.kind == "result" and claim.confidence != "unverified" and not any(_conditions(claim)):
        yield f"{what} is a result without conditions"
    yield from (f"{what} {problem}" for problem in _comparison(claim, vocabulary))


def _comparison(claim: Claim, vocabulary: Taxonomy) -> Iterator[str]:
    """Hold a claim's form against its unit, and its direction against the measure's."""
    measure, unit = vocabulary.measures.get(claim.measure), vocabulary.units.get(claim.unit)
    if measure is None or unit is None:
        return
    if claim.form != "amount" and unit.measures != "ratio":
        yield f"stands in {claim.unit}, so its form can only be 'amount'"
    if claim.form == "amount" and claim.kind == "result" and claim.unit == "x":
        yield "is so many times something, so its form cannot be 'amount'"
    if claim.kind != "result" or measure.better == "neither":
        return
    turned = {"higher": "lower", "lower": "higher"}
    due = turned[measure.better] if claim.form in {"times-less", "less"} else measure.better
    if claim.better != due:
        yield f"is of {claim.measure!r} and {claim.form!r}, so {due!r} is better, not {claim.better!r}"


def _conditions(claim: Claim) -> tuple[str, ...]:
    held = claim.conditions
    return (held.hardware, held.workload, held.baseline, held.other)


def _bibliography(system: System) -> Iterator[str]:
    if not system.publications:
        yield "there is no publication; a product or a vendor's mechanism has its guide (type 'manual' or 'misc')"
    for publication in system.publications:
        if publication.type in {"inproceedings", "article"} and not publication.container:
            yield f"the publication {publication.key!r} needs its container (proceedings or journal)"
        if not (publication.doi or publication.url or publication.arxiv):
            yield f"the publication {publication.key!r} needs a doi, an arxiv number or a url"
        if publication.month and publication.month not in _MONTHS:
            yield f"the publication {publication.key!r} has the unknown month {publication.month!r}"
    for link in system.links:
        if not link.url:
            yield f"a link of kind {link.kind!r} has no url"
    duplicate = [name for name, n in Counter(claim.id for claim in system.claims).items() if n > 1]
    yield from (f"the claim {name!r} is there twice" for name in duplicate)


def _tables(system: System) -> Iterator[str]:
    for table in system.tables:
        if any(len(row) != len(table.columns) for row in table.rows):
            yield f"the table {table.title!r} has rows that are not {len(table.columns)} cells long"


def _pool(system: System) -> Iterator[str]:
    pool = system.pool
    claims = {claim.id: claim for claim in system.claims}
    if pool.headline and pool.headline not in claims:
        yield f"pool.headline names the unknown claim {pool.headline!r}{did_you_mean(pool.headline, claims)}"
    elif pool.headline and claims[pool.headline].confidence == "unverified":
        yield f"pool.headline names the claim {pool.headline!r}, which is unverified"
    for name in pool.carriers:
        kind, _, rest = name.partition(":")
        known = carriers.features() if kind == "feature" else {*carriers.policies(), *carriers.planned_policies()}
        if rest not in known:
            yield f"pool.carriers names the unknown {kind} {rest!r}{did_you_mean(rest, known)}"
    if bool(pool.carriers) != bool(pool.extent):
        yield "pool.extent says how much the carriers carry, so it is there exactly if they are"
    if pool.carriers and not pool.differs and not pool.faithful:
        yield "pool names carriers but neither what is faithful nor what differs"
    if pool.carriers and all(carriers.available(name) for name in pool.carriers) and not pool.cell:
        yield "every carrier is available in the code, so pool.cell must show it"


def _recorded(system: System) -> Iterator[str]:
    """Find records that a text names: a newer one would leave it behind, while verdicts follow."""
    pool = system.pool
    texts = (pool.how, pool.expectation, *pool.faithful, *pool.differs, *(each.reason for each in system.verdicts))
    if any("benchmarks/results/" in text for text in texts):
        yield "pool or verdicts name a file of benchmarks/results; say the reason, the verdict shows the newest figure"


def _verdicts(system: System) -> Iterator[str]:
    claims = {claim.id for claim in system.claims if claim.confidence != "unverified"}
    figures = figure_names(system.id)
    for number, each in enumerate(system.verdicts, 1):
        if bool(each.claim) == bool(each.promise):
            yield f"verdicts {number} judges either a claim or a promise in words"
        if each.claim and each.claim not in claims:
            hint = did_you_mean(each.claim, claims)
            yield f"verdicts {number} names the unknown or unverified claim {each.claim!r}{hint}"
        if bool(each.figure) != bool(each.holds_if):
            yield f"verdicts {number} needs holds_if exactly if it names a figure"
        if each.figure and each.figure not in figures:
            hint = did_you_mean(each.figure, figures)
            yield f"verdicts {number} names the figure {each.figure!r}, which nothing records{hint}"
        elif each.figure and each.holds_if:
            try:
                within(each.holds_if, 0.0, FIGURES[system.id, each.figure].unit)
            except CatalogError as error:
                yield f"verdicts {number}: {error}"


def _claimed(systems: Sequence[System]) -> Iterator[str]:
    """Find what claims name as baseline or as measurer and is no other system."""
    ids = {system.id for system in systems}
    for system in systems:
        named = [(claim.id, name) for claim in system.claims for name in (*claim.against, claim.measured_by) if name]
        for claim, name in named:
            if name == system.id:
                yield f"{system.id}.toml: the claim {claim!r} names {name!r}, which is the system itself"
            elif name not in ids:
                hint = did_you_mean(name, ids)
                yield f"{system.id}.toml: the claim {claim!r} names {name!r}, which is no system{hint}"


def _relations(systems: Sequence[System]) -> Iterator[str]:
    ids = {system.id for system in systems}
    stated: dict[tuple[str, str, str], str] = {}
    for system in systems:
        for relation in system.relations:
            where = f"{system.id}.toml: the relation {relation.kind!r} to {relation.target!r}"
            if relation.target == system.id:
                yield f"{where} points at itself"
            elif relation.target not in ids:
                yield f"{where} has an unknown target{did_you_mean(relation.target, ids)}"
            one, other = system.id, relation.target
            if (one, relation.kind, other) in stated:
                yield f"{where} is there twice"
            mirrored = stated.get((other, relation.kind, one))
            if mirrored is not None and relation.kind not in SYMMETRIC:
                yield f"{where} is stated in both directions, which it cannot be"
            elif mirrored is not None and mirrored != relation.confidence:
                yield f"{where} is stated by both entries with different confidence"
            stated[one, relation.kind, other] = relation.confidence
