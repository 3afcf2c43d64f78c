"""Kinds of values that a pool's settings have, each with the most that it may be."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import ConfigDict, Field

from gpu_backend.wire.bounds import MOST_BYTES, MOST_COUNT, MOST_GPU_SECONDS, MOST_SECONDS, PRIORITY

#: Nothing is taken for what it is not ("8" for 8, true for 1), and no number is without end: JSON tells an agent none.
CONFIG = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)
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
