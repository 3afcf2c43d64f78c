"""The fields by which systems are listed, filtered, sorted and compared."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable
from typing import get_args

import msgspec

from catalog.carried import STATUSES, status, status_mark
from catalog.entry import Classification, Placement, System
from catalog.errors import UnknownField
from catalog.evidence import Claim
from catalog.loader import entries
from catalog.relations import KINDS, related
from catalog.render.document import Run
from catalog.render.words import conditions_text, confidence_mark, joined, placement_run, terms_text, value_text
from catalog.taxonomy import EVERYWHERE, Measure, taxonomy
from catalog.values import Availability, Kind
from catalog.verdict import OUTCOMES, verdicts_of

__all__ = ["COMPARED", "LISTED", "Field", "field", "fields"]

#: What a list shows unless told otherwise.
LISTED = ("id", "name", "year", "venue", "category", "interception", "sharing", "here")

#: What a comparison shows unless told otherwise.
COMPARED = (
    "year", "venue", "layer", "interception", "sharing", "memory_isolation", "fault_isolation",
    "performance_isolation", "transparency", "scheduling", "code", "results", "here",
)  # fmt: skip


class Field(msgspec.Struct, frozen=True):
    """One thing that every system has a value for.

    ``values`` are what filters and sorting look at; ``show`` is what a reader sees in a comparison, doubts
    included; ``brief`` is what has room in a list.
    """

    name: str
    label: str
    about: str
    values: Callable[[System], tuple[str | int, ...]]
    show: Callable[[System], Run]
    terms: tuple[str, ...] = ()
    """The fixed vocabulary, where there is one."""
    short: Callable[[System], Run] | None = None
    claims: Callable[[System], list[Claim]] | None = None
    """The claims behind the values, where they are claims of one ``measure``: these have an order."""
    measure: Measure | None = None

    def brief(self, system: System) -> Run:
        """Return what a list shows: ``show``, unless the field has something shorter."""
        return (self.short or self.show)(system)

    def plain_values(self, system: System) -> object:
        """Return the values as data: one value bare, several as a list."""
        found = self.values(system)
        return found[0] if len(found) == 1 else list(found)


#: What a field is called where a trial is shown, by which people look for it here too.
_ALSO = {"status": "here"}


def field(name: str) -> Field:
    """Return the field called ``name``; hyphens and underscores are alike, and ``status`` is ``here``.

    Raises
    ------
    UnknownField
        If there is none, with the nearest name.
    """
    known = fields()
    asked = name.strip().casefold().replace("-", "_")
    found = known.get(_ALSO.get(asked, asked))
    if found is None:
        raise UnknownField(name, known)
    return found


@functools.cache
def fields() -> dict[str, Field]:
    """Return every field by name."""
    all_of_them = [*_identity(), *_classification(), *_substance(), *_claims_by_measure()]
    return {each.name: each for each in all_of_them}


def _words(name: str, label: str, about: str, get: Callable[[System], Iterable[str]]) -> Field:
    """Make a field of plain words."""
    return Field(name, label, about, lambda s: tuple(get(s)), lambda s: "; ".join(get(s)))


def _one(name: str, label: str, about: str, get: Callable[[System], str]) -> Field:
    """Make a field of one plain text."""
    return Field(name, label, about, lambda s: (get(s),) if get(s) else (), get)


def _identity() -> list[Field]:
    return [
        _one("id", "id", "Short name for ever.", lambda s: s.id),
        _one("name", "name", "What people call it.", lambda s: s.name),
        _words("aliases", "also called", "Other names.", lambda s: s.aliases),
        _one("title", "title", "Title of the principal paper or product.", lambda s: s.title),
        Field("kind", "kind", "Paper, product, project or survey.", lambda s: (s.kind,), _kind, get_args(Kind)),
        Field("year", "year", "Of the principal publication or first release.", lambda s: (s.year,), _year),
        _one("venue", "venue", "Where it was published.", lambda s: s.venue),
        _words("institutions", "institutions", "Where it was made.", lambda s: s.institutions),
        _words("authors", "authors", "Of the principal publication.", _authors),
        _words("lists", "listed in", "Reading lists that name it.", lambda s: s.lists),
        _one("doi", "DOI", "Of the principal publication.", lambda s: s.publications[0].doi),
        _one("summary", "in one sentence", "What it does and by which idea.", lambda s: s.summary),
    ]


def _classification() -> list[Field]:
    words = taxonomy()
    out = []
    for each in dataclasses.fields(Classification):
        dimension = words.dimensions[each.name]

        def place(system: System, name: str = each.name) -> Placement:
            placement: Placement = getattr(system.classification, name)
            return placement

        out.append(
            Field(
                each.name,
                dimension.name.lower(),
                dimension.description,
                lambda s, place=place: tuple(place(s).terms),  # type: ignore[misc]
                lambda s, place=place, name=each.name: placement_run(name, place(s)),  # type: ignore[misc]
                (*dimension.terms, *sorted(EVERYWHERE)),
                lambda s, place=place, name=each.name: terms_text(name, place(s)),  # type: ignore[misc]
            )
        )
    return out


def _substance() -> list[Field]:
    return [
        _one("problem", "problem", "What it set out to solve.", lambda s: s.problem.text),
        _words("mechanism", "mechanism", "How it works.", lambda s: [m.text for m in s.mechanism]),
        _words("limitations", "limitations", "What it cannot do.", lambda s: [m.text for m in s.limitations]),
        _words("hardware", "evaluated on", "Hardware of the evaluation.", _hardware),
        _words("workloads", "workloads", "Of the evaluation.", _workloads),
        _words("baselines", "baselines", "Of the evaluation.", _baselines),
        Field(
            name="code",
            label="code",
            about="Whether the code can be had.",
            values=lambda s: (s.code.availability,),
            show=_code,
            terms=get_args(Availability),
        ),
        _one("licence", "licence", "Of the code.", lambda s: s.code.licence),
        _words("related", "related", "Relations to other systems.", _related),
        _claim_field("results", "results", "Verified results it claims.", kind="result"),
        _claim_field("parameters", "parameters", "Constants of its design.", kind="parameter"),
        _words("carriers", "carried here by", "Policies and features of this pool.", lambda s: s.pool.carriers),
        Field(
            name="here",
            label="its carrier here",
            about="Whether this pool carries the mechanism, as the code says.",
            values=lambda s: (status(s),),
            show=lambda s: (status_mark(s),),
            terms=STATUSES,
        ),
        Field(
            name="verdict",
            label="found here",
            about="What this project's records say of what it claims.",
            values=_outcomes,
            show=lambda s: ", ".join(_outcomes(s)).replace("-", " "),
            terms=OUTCOMES,
        ),
        _words("sources", "sources", "What was read.", lambda s: [source.title for source in s.sources]),
    ]


def _claims_by_measure() -> list[Field]:
    """Make one field per measure, such as ``claims.throughput``, so that quantities stand side by side."""
    return [
        _claim_field(
            f"claims.{measure.id.replace('-', '_')}",
            measure.name,
            f"Verified claims: {measure.description}",
            measure=measure,
        )
        for measure in taxonomy().measures.values()
    ]


def _claim_field(name: str, label: str, about: str, *, kind: str = "", measure: Measure | None = None) -> Field:
    """Make a field of the verified claims of one kind or measure."""

    def chosen(system: System) -> list[Claim]:
        return [
            claim
            for claim in system.claims
            if claim.confidence != "unverified"
            and kind in {"", claim.kind}
            and (not measure or claim.measure == measure.id)
        ]

    def values(system: System) -> tuple[str, ...]:
        return tuple(f"{claim.quantity}: {value_text(claim)}" for claim in chosen(system))

    shown = Field(name, label, about, values, lambda s: joined(map(_claim, chosen(s))))
    return msgspec.structs.replace(shown, claims=chosen, measure=measure) if measure else shown


def _claim(claim: Claim) -> Run:
    held = conditions_text(claim.conditions)
    text = f"{claim.quantity}: {value_text(claim)}" + (f" ({held})" if held else "")
    return text if claim.confidence == "high" else (f"{text} ", confidence_mark(claim.confidence))


def _outcomes(system: System) -> tuple[str, ...]:
    return tuple(dict.fromkeys(verdict.outcome for verdict in verdicts_of(system)))


def _kind(system: System) -> str:
    return system.kind.replace("-", " ")


def _year(system: System) -> str:
    return str(system.year)


def _authors(system: System) -> list[str]:
    return [" ".join(reversed(name.split(", "))) for name in system.publications[0].authors]


def _hardware(system: System) -> list[str]:
    return [each.hardware for each in system.evaluation if each.hardware] or ["not stated in what was read"]


def _workloads(system: System) -> list[str]:
    return [workload for each in system.evaluation for workload in each.workloads]


def _baselines(system: System) -> list[str]:
    return [baseline for each in system.evaluation for baseline in each.baselines]


def _code(system: System) -> str:
    known = [system.code.availability.replace("-", " "), system.code.licence]
    return ", ".join(part for part in known if part)


def _related(system: System) -> list[str]:
    names = entries()
    return [f"{KINDS[edge.kind]} {names[edge.target].name}" for edge in related(system.id)]
