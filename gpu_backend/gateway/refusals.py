"""A no, in words. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from gpu_backend.wire.errors import RefusalCode


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why not, and what to do."""

    code: RefusalCode
    message: str
    remedy: str
