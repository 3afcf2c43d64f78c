"""The shape of one catalogue entry, field by field.

Every file ``catalog/entries/<id>.toml`` is one :class:`System`. The classes here are declared once and read
twice: pydantic validates them wherever entries are written (tests, ``python -m catalog.check``, the published
JSON Schema), and msgspec decodes the already checked data where speed counts (a notebook cell). They are
standard-library dataclasses because importing pydantic alone costs more than the whole time that
``import catalog`` may take (``benchmarks/catalogue.py`` prints both).

The text under a field is its description in the JSON Schema and in ``docs/reference/catalogue.md``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from catalog.evidence import Claim, Judgement, Source, Statement, Unverified
from catalog.values import (
    ArxivNumber,
    Availability,
    BibtexKey,
    Carrier,
    Confidence,
    Doi,
    Extent,
    Kind,
    LinkKind,
    PublicationType,
    RelationKind,
    Slug,
    Text,
    Url,
)

__all__ = [
    "Classification",
    "CodeStatus",
    "Correction",
    "Evaluation",
    "InThePool",
    "Link",
    "Placement",
    "Publication",
    "Relation",
    "System",
    "Table",
]


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

    key: BibtexKey
    """BibTeX key, unique in the catalogue, for example ``wu2023tgs``."""
    type: PublicationType
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
    arxiv: ArxivNumber = ""
    """arXiv number without prefix."""
    url: Url = ""
    """Where to read it."""
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """Somewhere to go on reading."""

    kind: LinkKind
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
    extent: Extent | None = None
    """How much of it: the ``whole`` mechanism at this pool's unit, a ``part`` of it, or only its ``idea`` by other
    means; required as soon as there is a carrier."""
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
    #: Shows an entry, by kinds of text. The package says who does: whoever can knows all entries, and none of them him.
    _shown_by: ClassVar[Callable[[System], dict[str, str]]]

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
    """Short, stable names, so that filters meet: ``Peking University``, ``NVIDIA``; empty if nothing read names one."""
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
    verdicts: list[Judgement] = field(default_factory=list)
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
        return self._shown_by()["text/plain"]

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return self._shown_by()
