"""What published programs use of CuPy beyond its documentation, and what is said of what is not here."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Literal

import msgspec

from gpu_backend.opstream.surface import CUPY_VERSION


class Use(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A name; in how many places and repositories it was found; and what becomes of it here, and why."""

    name: str
    uses: int
    repositories: int
    now: Literal["served", "refused", "gone"]
    why: str


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    use: tuple[Use, ...]


@cache
def private_uses() -> tuple[Use, ...]:
    """Return the list as it stands in the file."""
    return msgspec.toml.decode(Path(__file__).with_name("private_uses.toml").read_bytes(), type=_File).use


def absence(qualname: str) -> str:
    """Return what to say of ``qualname``, which is not here: why, if it is one that programs ask for."""
    module, _, name = qualname.rpartition(".")
    text = f"module {module!r} has no attribute {name!r}"
    found = next((one for one in private_uses() if one.name == qualname and one.now != "served"), None)
    if found is None:
        return text
    if found.now == "refused":
        return f"{text}: CuPy has it and the remote one has not, because {found.why}."
    return f"{text}, and CuPy {CUPY_VERSION} has none: {found.why}."
