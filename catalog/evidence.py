"""What carries an entry: sources, statements with their sources, and claims as quantities.

Part of the shape that :mod:`catalog.entry` describes; the text under a field is its description in the JSON Schema.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from catalog.values import (
    Bound,
    ClaimConfidence,
    ClaimKind,
    Confidence,
    Date,
    Doi,
    Form,
    Slug,
    SourceKind,
    Statistic,
    Text,
    Url,
)

__all__ = ["Claim", "Conditions", "Judgement", "Source", "Statement", "Unverified"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Something that was read, and how much of it."""

    id: Slug
    """Short name by which the rest of this entry refers to the source, for example ``abstract`` or ``code``."""
    kind: SourceKind
    """``paper`` means the full text; ``third-party`` is everything that neither authors nor vendor wrote."""
    title: Text
    """What it is, in words a reader can look up."""
    read: Text
    """What was read of it: ``abstract``, ``sections 3 and 4``, the file names."""
    url: Url = ""
    """Where it stands; required unless ``doi`` is given or the kind is ``third-party``."""
    doi: Doi = ""
    """DOI without resolver, ``10.1145/3617995``."""
    revision: str = ""
    """Commit, tag or release that was read, where there are several."""
    accessed: Date = ""
    """When it was read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One sentence of fact with the sources that carry it."""

    text: Text
    """The fact, in our own words."""
    sources: list[Slug]
    """Ids of this entry's sources; at least one."""
    confidence: Confidence
    """``high``: read in a primary source; ``medium``: secondary, or our inference; ``low``: doubtful or no address."""
    note: str = ""
    """What a careful reader should know about the reading, for example that a number is our arithmetic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unverified:
    """Something heard but not checked. It is shown as such and never used in comparisons or figures."""

    text: Text
    """The statement."""
    seen_in: Text
    """Why it is here at all: ``remembered``, ``a lecture note``, ``a later paper's related work``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """What a claim holds under. An empty field means that what was read does not state it."""

    hardware: str = ""
    """Devices, machines, network."""
    workload: str = ""
    """What ran."""
    baseline: str = ""
    """What it is compared with."""
    other: str = ""
    """Anything else: section, figure, averaging, statement level."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A quantity with its value, unit, conditions, source and confidence.

    A claim has either a ``value`` (a number, or two) or an ``expression`` (a formula, or a word where the
    source gives no number); never both, never neither.
    """

    id: Slug
    """Name within the entry, for example ``opportunistic-throughput``."""
    kind: ClaimKind
    """A measured ``result``, a ``parameter`` of the design, a ``limit`` of it, or what it requires."""
    measure: Slug
    """What sort of quantity: a term of ``taxonomy.toml``, ``[measures]``. Claims of one measure are comparable."""
    quantity: Text
    """Exactly what is counted, as a noun phrase: ``throughput of opportunistic jobs``."""
    sources: list[Slug]
    """Ids of this entry's sources; at least one unless the confidence is ``unverified``."""
    confidence: ClaimConfidence
    """As for statements; ``unverified`` claims are shown marked and stay out of comparisons and figures."""
    bound: Bound = "exactly"
    """How the number is meant. ``between`` is a range, ``from-to`` a before and an after."""
    value: float | None = None
    """The number, in ``unit``."""
    value_to: float | None = None
    """Second number of ``between`` and ``from-to``."""
    unit: str = ""
    """A term of ``taxonomy.toml``, ``[units]``; required with ``value``."""
    expression: str = ""
    """Formula or wording where there is no number, for example ``max(0.00025 * max_rate, 1000)``."""
    form: Form = "amount"
    """How the number stands to its baseline. ``amount``: it is a quantity of its own; ``times``: the baseline times
    it; ``times-less``: the baseline divided by it; ``more`` and ``less``: the baseline and so much of it on top or
    off; ``share-of``: so much of the baseline. All but the first give one ratio, so that systems can be compared."""
    statistic: Statistic = "not-stated"
    """Of what the number is taken: ``p99`` of the requests, the ``mean`` of the workloads."""
    against: list[Slug] = field(default_factory=list)
    """Ids of the entries that are the baseline, where they have one; ``conditions.baseline`` says it in words."""
    measured_by: str = ""
    """Id of the entry whose authors measured it; empty if this system's own did."""
    better: Literal["higher", "lower", "neither"] = "neither"
    """Which direction of the stated number is good; the check holds it against the measure and the form."""
    conditions: Conditions = field(default_factory=Conditions)
    """What the number holds under."""
    note: str = ""
    """Caveats; required for ``unverified``: where it was seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """How a claim or a promise of the system is judged by what this project records.

    The verdict follows from the newest record: ``reproduced`` if its figure is within the limit, else what
    ``otherwise`` says. Without a figure it is ``not-runnable``, and the reason says why.
    """

    reason: Text
    """Why it holds, why it does not, or what is missing here; with the conditions that differ."""
    claim: str = ""
    """Id of the claim that is judged; empty if it is a promise without a number."""
    promise: str = ""
    """The promise in words; required without a claim."""
    figure: str = ""
    """Name of the recorded figure, one of ``catalog.phases``; empty for what cannot be run here."""
    holds_if: str = ""
    """Limit within which the figure confirms it: ``>=95%``, or two: ``>=25%, <=35%``; required with a figure."""
    otherwise: Literal["weaker", "contradicted"] = "weaker"
    """What it is if the figure is not within the limit."""
