"""Compares the shape of an entry with :mod:`catalog.entry`, by way of pydantic; says in sentences what does not fit."""

from __future__ import annotations

import dataclasses
import functools
import json
import typing
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from catalog.entry import System
from catalog.nearest import did_you_mean

if TYPE_CHECKING:
    from pydantic import TypeAdapter
    from pydantic_core import ErrorDetails

__all__ = ["MalformedEntry", "adapter", "validate"]


class MalformedEntry(ValueError):
    """An entry is not what :mod:`catalog.entry` describes; ``problems`` holds one sentence each."""

    def __init__(self, where: str, problems: list[str]) -> None:
        self.where = where
        self.problems = problems
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        super().__init__(f"{where}: {problems[0]}{more}")


@functools.cache
def adapter() -> TypeAdapter[System]:
    """Return pydantic's validator of :class:`~catalog.entry.System`, built at the first call."""
    from pydantic import TypeAdapter

    return TypeAdapter(System)


def validate(data: Mapping[str, Any], where: str) -> System:
    """Turn the parsed TOML of one entry into a :class:`~catalog.entry.System`.

    Parameters
    ----------
    data
        What ``tomllib`` made of the file.
    where
        File name for messages.

    Raises
    ------
    MalformedEntry
        With one sentence per problem, unknown names with the nearest known one.
    """
    from pydantic import ValidationError

    try:
        # By way of JSON, because pydantic's strict mode takes a table for a dataclass only there.
        # A bare TOML date becomes the text that the schema expects.
        return adapter().validate_json(json.dumps(data, default=str))
    except ValidationError as refused:
        raise MalformedEntry(where, [_sentence(error) for error in refused.errors()]) from None


def _sentence(error: ErrorDetails) -> str:
    """Say what pydantic found, with the place first and the nearest valid name last."""
    *parents, last = error["loc"] or ("entry",)
    place = ".".join(str(part) for part in parents)
    inside = f" in {place}" if place else ""
    if error["type"] == "unexpected_keyword_argument":
        return f"unknown field {last!r}{inside}{did_you_mean(str(last), _fields_at(parents))}"
    if error["type"] in {"missing", "missing_argument"}:
        return f"the field {last!r} is missing{inside}"
    if error["type"] == "literal_error":
        expected = str(error["ctx"]["expected"]) if "ctx" in error else ""
        names = [part.strip(" '") for part in expected.replace(" or ", ",").split(",")]
        return f"{last}{inside} may not be {error['input']!r}{did_you_mean(str(error['input']), names)}"
    if error["type"] == "string_pattern_mismatch":
        return f"{last}{inside} is malformed: {error['input']!r}"
    return f"{last}{inside}: {error['msg'].lower()}, not {error['input']!r}"


def _fields_at(loc: Iterable[int | str]) -> list[str]:
    """Return the field names of the class that ``loc`` leads to, ``[]`` if it leads nowhere."""
    here: Any = System
    for part in loc:
        if isinstance(part, int):
            here = typing.get_args(here)[0]
        elif dataclasses.is_dataclass(here):
            here = typing.get_type_hints(here).get(part)
    return [field.name for field in dataclasses.fields(here)] if dataclasses.is_dataclass(here) else []
