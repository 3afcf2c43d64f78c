"""What single fields of an entry may hold: patterns and fixed choices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

__all__ = [
    "ArxivNumber",
    "Availability",
    "BibtexKey",
    "Bound",
    "Carrier",
    "ClaimConfidence",
    "ClaimKind",
    "Confidence",
    "Date",
    "Doi",
    "Extent",
    "Form",
    "Kind",
    "LinkKind",
    "Pattern",
    "PublicationType",
    "RelationKind",
    "Slug",
    "SourceKind",
    "Statistic",
    "Text",
    "Url",
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
ArxivNumber = Annotated[str, Pattern(r"^(\d{4}\.\d{4,5})?$")]
BibtexKey = Annotated[str, Pattern(r"^[A-Za-z][A-Za-z0-9:_-]*$")]
Extent = Literal["whole", "part", "idea"]
Form = Literal["amount", "times", "times-less", "more", "less", "share-of"]
Statistic = Literal["mean", "median", "p95", "p99", "tail", "maximum", "minimum", "total", "not-stated"]
Bound = Literal["exactly", "about", "up-to", "at-least", "below", "above", "between", "from-to"]
ClaimKind = Literal["result", "parameter", "limit", "requirement"]
LinkKind = Literal["paper", "preprint", "code", "homepage", "documentation", "slides", "talk", "artifact", "notes"]
PublicationType = Literal["inproceedings", "article", "techreport", "manual", "misc"]
