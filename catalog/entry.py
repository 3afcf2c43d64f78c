"""The shape of one catalogue entry, field by field.

Every file ``catalog/entries/<id>.toml`` is one :class:`System`. The classes here are declared once and read
twice: pydantic validates them wherever entries are written (tests, ``python -m catalog.check``, the published
JSON Schema), and msgspec decodes the already checked data where speed counts (a notebook cell). They are
standard-library dataclasses because importing pydantic alone costs more than the whole time that
``import catalog`` may take (``benchmarks/catalog.py`` prints both).

The text under a field is its description in the JSON Schema and in ``docs/reference/catalogue.md``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

__all__ = [
    "Claim",
    "Classification",
    "CodeStatus",
    "Conditions",
    "Correction",
    "Evaluation",
    "InThePool",
    "Link",
    "Placement",
    "Publication",
    "Relation",
    "Source",
    "Statement",
    "System",
    "Table",
    "Unverified",
]


@dataclass(frozen=True, slots=True)
class Pattern:
    """A regular expression that a string must match; pydantic applies it, msgspec passes over it."""

    regex: str

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema  # only ever reached from inside pydantic

        return core_schema.str_schema(pattern=self.regex)


Slug = Annotated[str, Pattern(r"^[a-z0-9]+(-[a-z0-9]+)*$")]
Text = Annotated[str, Pattern(r"\S")]
Url = Annotated[str, Pattern(r"^(https?://[^\s/?#]+\.[^\s]+)?$")]
Doi = Annotated[str, Pattern(r"^(10\.\d{4,9}/\S+)?$")]
Date = Annotated[str, Pattern(r"^(\d{4}(-\d{2}(-\d{2})?)?)?$")]
Carrier = Annotated[str, Pattern(r"^(policy:[a-z][a-z0-9_]*|feature:[a-z0-9]+(-[a-z0-9]+)*)$")]

Availability = Literal["open", "partial", "binaries", "closed", "none-found", "not-applicable"]
Confidence = Literal["high", "medium", "low"]
ClaimConfidence = Literal["high", "medium", "low", "unverified"]
Kind = Literal["research-system", "product", "vendor-mechanism", "open-source-project", "survey"]
SourceKind = Literal[
    "paper", "abstract", "artifact", "code", "documentation", "vendor-post", "bibliographic-record", "third-party"
]
RelationKind = Literal[
    "builds-on", "compares-with", "follow-up-of", "same-authors", "same-mechanism", "name-clash", "see-also"
]


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
    """``high``: read in a primary source; ``medium``: secondary, or our inference; ``low``: a doubtful source."""
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
    kind: Literal["result", "parameter", "limit", "requirement"]
    """A measured ``result``, a ``parameter`` of the design, a ``limit`` of it, or what it requires."""
    measure: Slug
    """What sort of quantity: a term of ``taxonomy.toml``, ``[measures]``. Claims of one measure are comparable."""
    quantity: Text
    """Exactly what is counted, as a noun phrase: ``throughput of opportunistic jobs``."""
    sources: list[Slug]
    """Ids of this entry's sources; at least one unless the confidence is ``unverified``."""
    confidence: ClaimConfidence
    """As for statements; ``unverified`` claims are shown marked and stay out of comparisons and figures."""
    bound: Literal["exactly", "about", "up-to", "at-least", "below", "above", "between", "from-to"] = "exactly"
    """How the number is meant. ``between`` is a range, ``from-to`` a before and an after."""
    value: float | None = None
    """The number, in ``unit``."""
    value_to: float | None = None
    """Second number of ``between`` and ``from-to``."""
    unit: str = ""
    """A term of ``taxonomy.toml``, ``[units]``; required with ``value``."""
    expression: str = ""
    """Formula or wording where there is no number, for example ``max(0.00025 * max_rate, 1000)``."""
    better: Literal["higher", "lower", "neither"] = "neither"
    """Which direction is good, for figures and comparisons."""
    conditions: Conditions = field(default_factory=Conditions)
    """What the number holds under."""
    note: str = ""
    """Caveats; required for ``unverified``: where it was seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Where a system stands in one dimension of the taxonomy."""

    terms: list[Slug]
    """Terms of that dimension in ``taxonomy.toml``; at least one. Every dimension offers ``not-stated``."""
    sources: list[Slug] = field(default_factory=list)
    """Ids of this entry's sources; at least one unless the terms are ``not-stated`` or ``not-applicable``."""
    confidence: Confidence = "high"
    """As for statements."""
    detail: str = ""
    """How exactly, in a phrase."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Classification:
    """The system's place in every dimension of the taxonomy; none may be left out."""

    category: Placement
    """Which half of the field, and which shelf in it."""
    layer: Placement
    """The approach by layer, after the CSUR 2017 survey, with what came later beside it."""
    interception: Placement
    """Where the system cuts in between the application and the device."""
    sharing: Placement
    """How several users come onto one GPU, or one user onto a distant one."""
    scope: Placement
    """How far it reaches: process, node, cluster."""
    memory_isolation: Placement
    """What keeps one tenant's memory from another's."""
    fault_isolation: Placement
    """What keeps one tenant's failure from another."""
    performance_isolation: Placement
    """What keeps one tenant's load from another's speed."""
    transparency: Placement
    """What has to change for a program to run under it."""
    scheduling: Placement
    """By which discipline it decides who runs."""
    memory: Placement
    """What it does about GPU memory beyond native allocation."""
    transport: Placement
    """How calls and data travel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """On what the authors evaluated it."""

    sources: list[Slug]
    """Ids of this entry's sources; at least one."""
    confidence: Confidence
    """As for statements."""
    hardware: str = ""
    """Devices and machines; empty if not stated in what was read."""
    workloads: list[str] = field(default_factory=list)
    """What ran."""
    baselines: list[str] = field(default_factory=list)
    """What it was compared with."""
    note: str = ""
    """Anything else: platform, badges."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table that the source prints and that would be lost as sentences, for example MIG profiles."""

    title: Text
    """Caption."""
    columns: list[Text]
    """Column heads."""
    rows: list[list[str]]
    """Cells, each row as long as ``columns``."""
    sources: list[Slug]
    """Ids of this entry's sources; at least one."""
    confidence: Confidence
    """As for statements."""
    note: str = ""
    """Footnote."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeStatus:
    """Whether the code can be had."""

    availability: Availability
    """``partial``: some of the system is public; ``binaries``: programs without source."""
    sources: list[Slug] = field(default_factory=list)
    """Ids of this entry's sources; at least one unless ``none-found`` or ``not-applicable``."""
    confidence: Confidence = "high"
    """As for statements."""
    url: Url = ""
    """Main repository."""
    licence: str = ""
    """SPDX name or a phrase."""
    last_activity: str = ""
    """Date of the last commit or release found, with what it was."""
    detail: str = ""
    """What is public and what is not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """One bibliographic record; the first of an entry is what ``%catalog cite`` prints first."""

    key: Annotated[str, Pattern(r"^[A-Za-z][A-Za-z0-9:_-]*$")]
    """BibTeX key, unique in the catalogue, for example ``wu2023tgs``."""
    type: Literal["inproceedings", "article", "techreport", "manual", "misc"]
    """BibTeX entry type."""
    title: Text
    """Full title."""
    year: int
    """Year of this publication."""
    authors: list[Text] = field(default_factory=list)
    """``Given Family`` or ``Family, Given``; empty means the entry's institutions, as corporate author."""
    container: str = ""
    """Proceedings or journal; required for ``inproceedings`` and ``article``."""
    volume: str = ""
    number: str = ""
    pages: str = ""
    """``69--85`` or ``69-85``."""
    publisher: str = ""
    month: str = ""
    """Three letters, ``apr``."""
    doi: Doi = ""
    arxiv: Annotated[str, Pattern(r"^(\d{4}\.\d{4,5})?$")] = ""
    """arXiv number without prefix."""
    url: Url = ""
    """Where to read it."""
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """Somewhere to go on reading."""

    kind: Literal["paper", "preprint", "code", "homepage", "documentation", "slides", "talk", "artifact", "notes"]
    url: Url
    label: str = ""
    """What is behind it, where the kind does not say enough."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """How this system stands to another one.

    Written once, on either side: the catalogue mirrors ``same-authors``, ``same-mechanism``, ``name-clash``
    and ``see-also``, and shows ``builds-on``, ``compares-with`` and ``follow-up-of`` backwards as
    ``basis-of``, ``compared-by`` and ``followed-by``.
    """

    kind: RelationKind
    target: Slug
    """Id of the other system."""
    sources: list[Slug] = field(default_factory=list)
    """Ids of this entry's sources; at least one for ``builds-on``, ``compares-with`` and ``follow-up-of``."""
    confidence: Confidence = "high"
    note: str = ""
    """What exactly is shared, built upon or compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """What a list that this catalogue grew from says, and what is right."""

    stated_in: Text
    """Which list or page."""
    says: Text
    correct: Text
    sources: list[Slug]
    """Ids of this entry's sources; at least one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InThePool:
    """Which policy or feature of this pool carries the mechanism. All of it is our design, none of it theirs.

    Whether a carrier is available is never written here: it is read off the code.
    """

    carriers: list[Carrier]
    """``policy:<module in gpu_backend/arbiter/policies>`` or ``feature:<id in carriers.toml>``; may be empty."""
    how: Text
    """How the mechanism is carried, or why it cannot be."""
    faithful: list[Text] = field(default_factory=list)
    """What is as in the original."""
    differs: list[Text] = field(default_factory=list)
    """What is not, and why."""
    headline: str = ""
    """Id of the claim to set beside our own figure; empty if the entry has no such claim."""
    expectation: str = ""
    """What a run on this pool should show; our target, not a result of the authors."""
    cell: str = ""
    """Python cell that shows it, ready to run; required as soon as every carrier is available."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class System:
    """One system of the field: what it is, how it works, what it claims, and who says so."""

    #: Read by pydantic, for this class and all inside it.
    __pydantic_config__: ClassVar[dict[str, Any]] = {
        "extra": "forbid",
        "strict": True,
        "use_attribute_docstrings": True,
    }

    id: Slug
    """File name without ``.toml``; stays the same for ever."""
    name: Text
    """What people call it."""
    title: Text
    """Title of the principal paper, or the product's full name."""
    kind: Kind
    year: int
    """Year of the principal publication, or of first general release."""
    venue: Text
    """Short venue for lists and filters: ``NSDI``, ``EuroSys``, ``product``, ``vendor``."""
    institutions: list[Text]
    """Short, stable names, so that filters meet: ``Peking University``, ``NVIDIA``."""
    summary: Text
    """One sentence: what it does and by which idea."""
    full_text_read: bool
    """False if the paper itself was not read and the entry rests on abstract, code and secondary sources."""
    problem: Statement
    """What it set out to solve."""
    mechanism: list[Statement]
    """How it works, step by step."""
    classification: Classification
    code: CodeStatus
    publications: list[Publication]
    sources: list[Source]
    pool: InThePool
    aliases: list[Text] = field(default_factory=list)
    """Other names that a search should find."""
    disambiguation: str = ""
    """Which other system it must not be confused with."""
    year_note: str = ""
    """Why this year, where that is debatable."""
    lists: list[Text] = field(default_factory=list)
    """Reading lists that name it; empty for systems added by us."""
    claims: list[Claim] = field(default_factory=list)
    evaluation: list[Evaluation] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    limitations: list[Statement] = field(default_factory=list)
    relations: list[Relation] = field(default_factory=list)
    corrections: list[Correction] = field(default_factory=list)
    unverified: list[Unverified] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)

    def __repr__(self) -> str:
        return f"<{self.name} ({self.venue} {self.year}): {self.summary}>"

    def __str__(self) -> str:
        from catalog.show import as_text  # what shows an entry knows its shape, not the other way round

        return as_text(self)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        from catalog.show import as_bundle

        return as_bundle(self)
