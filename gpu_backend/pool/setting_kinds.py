"""Kinds of values that a pool's settings have, each with the most that it may be."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationInfo, field_validator

from gpu_backend.wire.bounds import MOST_BYTES, MOST_COUNT, MOST_GPU_SECONDS, MOST_SECONDS, PRIORITY
from gpu_backend.wire.errors import quoted

#: Nothing is taken for what it is not ("8" for 8, true for 1), and no number is without end: JSON tells an agent none.
CONFIG = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)
#: What is told to a program as it stands, and to no person.
_UNSHOWN = ("executor_command",)
_HOST = re.compile(r"[\w.:%\[\]*-]*", re.ASCII)


def _host(text: str) -> str:
    if not _HOST.fullmatch(text):
        raise ValueError(f"{quoted(text)} is no name or address of a machine")
    return text


Host = Annotated[str, AfterValidator(_host)]
Bytes = Annotated[int, Field(le=MOST_BYTES)]
Count = Annotated[int, Field(le=MOST_COUNT)]
Priority = Annotated[int, Field(le=PRIORITY.most)]
Seconds = Annotated[float, Field(le=MOST_SECONDS)]
GpuSeconds = Annotated[float, Field(le=MOST_GPU_SECONDS)]
# TOML has lists and no tuples, and a table's keys are text.
Words = Annotated[tuple[str, ...], Field(strict=False)]
Number = Annotated[int, Field(strict=False, ge=0, le=MOST_COUNT)]


def most(default: float, what: str) -> Any:
    """Return the field of a setting that is a limit."""
    return Field(default=default, ge=0, description=f"Most {what}; 0 for no limit.")


class Settings(BaseModel):
    """Settings whose texts are single lines: people see them in tables and commands, and a file has each on a line."""

    model_config = CONFIG

    @field_validator("*")
    @classmethod
    def _can_be_shown(cls, value: Any, info: ValidationInfo) -> Any:
        if info.field_name not in _UNSHOWN:
            for text in _texts(value):
                if not text.isprintable():
                    raise ValueError(f"{quoted(text)} has a character that cannot be shown, such as a line break")
        return value


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, tuple):
        yield from (one for one in value if isinstance(one, str))
    elif isinstance(value, dict):
        yield from (one for one in value.values() if isinstance(one, str))
