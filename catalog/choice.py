"""From five answers to systems: what each answer asks of an entry, and what the entries say to it.

Nothing here knows a system. An answer becomes places in the taxonomy; an entry stands there, stands elsewhere, or does
not say. Who stands elsewhere is out, with the answer that put it out. What is left and was measured on this pool is set
side by side as well, by what it keeps for the one and gives to the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from catalog.carried import status
from catalog.entry import Placement, System
from catalog.errors import UnknownField, UnknownTerm
from catalog.fronts import FIELDS, points
from catalog.render.displayed import Displayed
from catalog.render.document import Block, Bullets, Document, Grid, Heading, Inline, Mark, Paragraph, Run
from catalog.render.words import terms_text
from catalog.taxonomy import EVERYWHERE
from catalog.verdict import verdicts_of

__all__ = ["QUESTIONS", "Choice", "Demand", "Question", "Suggestion"]

#: More would be a list, not an answer.
_SHOWN = 12


class Demand(msgspec.Struct, frozen=True):
    """What an answer asks of one dimension: to stand at one of these terms, or with ``absent`` at none of them."""

    dimension: str
    terms: frozenset[str]
    why: str
    absent: bool = False


class Question(msgspec.Struct, frozen=True):
    """One question with the answers that it takes, and what each demands."""

    name: str
    asks: str
    answers: dict[str, tuple[Demand, ...]]


def _demand(dimension: str, terms: str, why: str) -> Demand:
    return Demand(dimension, frozenset(terms.split()), why)


QUESTIONS = (
    Question(
        "trusted",
        "Do all tenants trust each other?",
        {
            "yes": (),
            "no": (
                _demand("memory_isolation", "address-space quota hardware-slice whole-device", "strangers' memory"),
                _demand("fault_isolation", "process hardware whole-device", "strangers' failures"),
            ),
        },
    ),
    Question(
        "kubernetes",
        "Is it to be run by Kubernetes or another cluster scheduler?",
        {
            "yes": (_demand("interception", "cluster-scheduler", "placement by the cluster"),),
            "no": (
                Demand("interception", frozenset({"cluster-scheduler"}), "no cluster scheduler needed", absent=True),
            ),
        },
    ),
    Question(
        "closed",
        "Do programs run that cannot be changed or rebuilt?",
        {"yes": (_demand("transparency", "unmodified relinked declared", "closed binaries"),), "no": ()},
    ),
    Question(
        "goal",
        "What matters more: one tenant's latency, or the throughput of all?",
        {
            "latency": (
                _demand("performance_isolation", "priority hardware-slice sm-partition whole-device", "latency"),
            ),
            "throughput": (_demand("sharing", "temporal spatial", "throughput of all"),),
        },
    ),
    Question(
        "oversubscription",
        "Do tenants together need more GPU memory than there is?",
        {"yes": (_demand("memory", "oversubscription", "memory beyond the GPU's"),), "no": ()},
    ),
)


class Suggestion(msgspec.Struct, frozen=True):
    """A system that no answer puts out: the demands that it meets, and those on which its entry says nothing."""

    system: System
    met: tuple[Demand, ...]
    open: tuple[Demand, ...]

    @property
    def rank(self) -> tuple[int, int, int, str]:
        """Least first: demands not answered, doubtful answers, what can be neither had nor tried, the name."""
        doubtful = sum(_place(self.system, each).confidence != "high" for each in self.met)
        out_of_reach = self.system.code.availability not in {"open", "partial", "not-applicable"}
        return (len(self.open), doubtful, int(out_of_reach), self.system.name.casefold())


class Choice(Displayed):
    """What fits some answers, best first, with reasons; ``out`` counts by answer who was put out."""

    def __init__(self, systems: Iterable[System], answers: Mapping[str, str]) -> None:
        """Judge ``systems`` by ``answers``, question by name.

        Raises
        ------
        UnknownField, UnknownTerm
            If there is no such question or answer, with the nearest one.
        """
        self.answers = {_question(name).name: _answer(name, answer) for name, answer in answers.items()}
        self.unanswered = tuple(each for each in QUESTIONS if each.name not in self.answers)
        demands = [
            (question, demand)
            for question in QUESTIONS
            for demand in question.answers.get(self.answers.get(question.name, ""), ())
        ]
        self.out: Counter[str] = Counter()
        found = []
        for system in systems:
            if system.kind == "survey":
                continue
            against = [question.name for question, demand in demands if _stands(system, demand) is False]
            if against:
                self.out.update(set(against))
                continue
            met = tuple(demand for _, demand in demands if _stands(system, demand))
            found.append(Suggestion(system, met, tuple(each for _, each in demands if each not in met)))
        self.suggestions = tuple(sorted(found, key=lambda each: each.rank))

    def __repr__(self) -> str:
        return f"<{len(self.suggestions)} systems for {self.answers}>"

    def records(self) -> list[dict[str, Any]]:
        """Return one dictionary per system, best first."""
        return [
            {
                "system": each.system.id,
                "met": {demand.dimension: list(_place(each.system, demand).terms) for demand in each.met},
                "not_stated": [demand.dimension for demand in each.open],
                "here": status(each.system),
                "verdicts": [verdict.outcome for verdict in verdicts_of(each.system)],
            }
            for each in self.suggestions
        ]

    def document(self) -> Document:
        """Show the questions that are open, then the systems with their reasons, then who is out and why."""
        blocks: list[Block] = []
        if self.unanswered:
            asked = tuple(f"{q.asks} {q.name}={'|'.join(q.answers)}" for q in self.unanswered)
            blocks += [Heading("Not answered"), Bullets(asked)]
        if not self.answers:
            return Document(
                "Five questions", (*blocks, Paragraph("Answer as many as you can: choose trusted=no goal=latency"))
            )
        rows = tuple(_row(each) for each in self.suggestions[:_SHOWN])
        caption = f"{len(self.suggestions)} fit, the surest {len(rows)} shown"
        table: Block = Grid(("system", "because", "its entry does not say", "code", "here"), rows, caption)
        blocks.append(table if rows else Paragraph("No system of the catalogue fits all answers."))
        blocks += self._fronts()
        if self.out:
            lines = tuple(f"{name}={self.answers[name]} rules out {count}" for name, count in self.out.most_common())
            blocks += [Heading("Ruled out by what they are"), Bullets(lines)]
        return Document(", ".join(f"{name}={answer}" for name, answer in self.answers.items()), tuple(blocks))

    def _fronts(self) -> Iterator[Block]:
        """Show what the suggested systems trade here, where they were measured alike; the goal says who comes first."""
        first = "given" if self.answers.get("goal") == "throughput" else "kept"
        names = {each.system.id: each.system.name for each in self.suggestions}
        for field in FIELDS:
            found = points(field, names, first=first)
            if found:
                rows: tuple[tuple[Run, ...], ...] = tuple(
                    (
                        names[point.system],
                        point.kept.sentence(),
                        point.given.sentence(),
                        (Mark("on the front", "good") if point.is_front else Mark("beaten by another", "waiting"),),
                    )
                    for point in found
                )
                yield Heading("Measured on this pool")
                yield Grid(("system", "what is kept", "what is given", "front"), rows, field.situation)


def _row(each: Suggestion) -> tuple[Run, ...]:
    because = "; ".join(
        f"{demand.why}: {terms_text(demand.dimension, _place(each.system, demand))}" for demand in each.met
    )
    missing = ", ".join(demand.why for demand in each.open)
    marks: list[Inline] = [status(each.system)]
    for outcome in dict.fromkeys(verdict.outcome for verdict in verdicts_of(each.system)):
        marks += [" ", Mark(outcome.replace("-", " "), "good" if outcome == "reproduced" else "waiting")]
    return (
        each.system.name,
        because or "nothing was asked of it",
        missing,
        each.system.code.availability,
        tuple(marks),
    )


def _stands(system: System, demand: Demand) -> bool | None:
    """Return whether the system stands where it is demanded; none if its entry does not say."""
    terms = set(_place(system, demand).terms)
    return None if terms <= EVERYWHERE else bool(terms & demand.terms) != demand.absent


def _place(system: System, demand: Demand) -> Placement:
    place: Placement = getattr(system.classification, demand.dimension)
    return place


def _question(name: str) -> Question:
    known = {each.name: each for each in QUESTIONS}
    if name not in known:
        raise UnknownField(name, known)
    return known[name]


def _answer(name: str, answer: str) -> str:
    known = _question(name).answers
    if answer not in known:
        raise UnknownTerm(answer, name, known)
    return answer
