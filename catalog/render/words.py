"""How single facts of an entry read: a claim's value, a place in the taxonomy, a source."""

from __future__ import annotations

import math
from collections.abc import Iterable

from catalog.entry import Placement, Publication, System
from catalog.evidence import Claim, Conditions, Source
from catalog.render.document import Inline, Link, Mark, Run
from catalog.taxonomy import EVERYWHERE, taxonomy

__all__ = [
    "address",
    "conditions_text",
    "confidence_mark",
    "doubt_mark",
    "joined",
    "measured_text",
    "number_text",
    "placement_run",
    "source_links",
    "term_name",
    "terms_text",
    "value_text",
]

_TONES = {"high": "plain", "medium": "waiting", "low": "doubt", "unverified": "doubt"}
_BOUNDS = {"exactly": "", "about": "about ", "up-to": "up to ", "at-least": "at least ", "below": "below ",
           "above": "above ", "between": "", "from-to": ""}  # fmt: skip


def number_text(value: float) -> str:
    """Return a number as people write it: no trailing zeros, thousands apart."""
    if value == int(value):
        return f"{int(value):,}".replace(",", " ") if abs(value) >= 10_000 else str(int(value))
    return f"{value:.12g}"


def measured_text(value: float) -> str:
    """Return a measured number to three significant digits: what more there is changes from run to run."""
    return number_text(round(value, 2 - math.floor(math.log10(abs(value))))) if value else "0"


def value_text(claim: Claim) -> str:
    """Return what a claim says, for example ``up to 15x`` or ``26 % to 76 %``."""
    if claim.value is None:
        return claim.expression
    first = _with_unit(claim.value, claim.unit)
    if claim.value_to is None:
        return f"{_BOUNDS[claim.bound]}{first}"
    second = _with_unit(claim.value_to, claim.unit)
    return f"from {first} to {second}" if claim.bound == "from-to" else f"{first} to {second}"


def _with_unit(value: float, unit: str) -> str:
    number = number_text(value)
    if unit == "1":
        return number
    return f"{number}x" if unit == "x" else f"{number} {unit}"


def conditions_text(held: Conditions) -> str:
    """Return what a claim holds under, as one line; empty if nothing is stated."""
    parts = (
        held.workload,
        f"on {held.hardware}" if held.hardware else "",
        f"against {held.baseline}" if held.baseline else "",
        held.other,
    )
    return "; ".join(part for part in parts if part)


def confidence_mark(confidence: str) -> Mark:
    """Return the confidence as a mark; what is not high stands out."""
    return Mark(confidence, _TONES[confidence])


def doubt_mark(confidence: str) -> tuple[Inline, ...]:
    """Return what follows a statement: nothing if it is certain, or a mark that says how certain it is."""
    return () if confidence == "high" else (" ", Mark(f"{confidence} confidence", _TONES[confidence]))


def term_name(dimension: str, term: str) -> str:
    """Return the words for a term."""
    return term.replace("-", " ") if term in EVERYWHERE else taxonomy().dimensions[dimension].terms[term].name


def terms_text(dimension: str, placement: Placement) -> str:
    """Return a place in the taxonomy: the terms alone, with a question mark where the confidence is low."""
    words = ", ".join(term_name(dimension, term) for term in placement.terms)
    return f"{words} (?)" if placement.confidence == "low" else words


def placement_run(dimension: str, placement: Placement) -> Run:
    """Return a place in the taxonomy: terms, detail, and a mark where the confidence is not high."""
    words = ", ".join(term_name(dimension, term) for term in placement.terms)
    detail = f" ({placement.detail})" if placement.detail else ""
    return (words + detail, *doubt_mark(placement.confidence))


def address(thing: Source | Publication) -> str:
    """Return where a source or publication stands, empty if nowhere on the web."""
    return thing.url or (f"https://doi.org/{thing.doi}" if thing.doi else "")


def source_links(system: System, names: Iterable[str]) -> tuple[Inline, ...]:
    """Return references to sources as ``[abstract] [code]``, each a link where it has an address."""
    known = {source.id: source for source in system.sources}
    return tuple(part for name in names for part in (" ", _reference(known[name])))


def _reference(source: Source) -> Inline:
    where = address(source)
    # The list of sources spells the address out; a sentence stays readable.
    return Link(f"[{source.id}]", where, spelled=False) if where else f"[{source.id}]"


def joined(parts: Iterable[Run], between: str = "; ") -> tuple[Inline, ...]:
    """Return several runs as one."""
    out: list[Inline] = []
    for number, part in enumerate(parts):
        out += [between] if number else []
        out += [part] if isinstance(part, str) else list(part)
    return tuple(out)
