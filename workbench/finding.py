"""What a check of ``workbench doctor`` comes out with."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    """How a check came out."""

    OK = "ok"
    NOTE = "note"  #: something that not everybody needs is missing
    PROBLEM = "problem"  #: something that was set up does not work


@dataclass(frozen=True)
class Finding:
    """The outcome of one check. ``remedy`` says what to do unless all is well."""

    subject: str
    state: State
    found: str
    remedy: str = ""
