"""Reads the entries, quickly.

The entries are TOML for people. Parsing all of them takes a few tenths of a second, so what was parsed is kept as
one JSON file, in the package's ``__pycache__`` or else in the user's cache folder, and read from there as long as
the entries' contents have not changed. Like compiled Python it is safe to delete and never has to be made by hand.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from catalog.entry import System
from catalog.paths import ENTRIES, PACKAGE

__all__ = ["entries", "read_entry"]


class _Kept(msgspec.Struct, frozen=True):
    """What was parsed, and from which contents."""

    fingerprint: str
    systems: list[System]


@functools.cache
def entries() -> dict[str, System]:
    """Return every system by id, oldest first; read once per process.

    Raises
    ------
    MalformedEntry
        If a file does not have the shape of :class:`~catalog.entry.System`. One sentence says where.
    """
    texts = {path.name: path.read_bytes() for path in sorted(ENTRIES.glob("*.toml"))}
    fingerprint = _fingerprint(texts)
    systems = _kept(fingerprint)
    if systems is None:
        systems = [read_entry(text, name) for name, text in texts.items()]
        systems.sort(key=lambda system: (system.year, system.name.casefold()))
        _keep(_Kept(fingerprint, systems))
    return {system.id: system for system in systems}


def read_entry(text: bytes, name: str) -> System:
    """Parse one entry.

    Parameters
    ----------
    text
        TOML, UTF-8.
    name
        File name for messages.

    Raises
    ------
    MalformedEntry
        If it is not TOML or not of the shape of an entry.
    """
    import tomllib  # both are needed only after an entry has changed

    from catalog.validation import MalformedEntry, validate

    try:
        data = tomllib.loads(text.decode())
        return msgspec.convert(data, System)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as refused:
        raise MalformedEntry(name, [f"not valid TOML: {refused}"]) from None
    except msgspec.ValidationError:
        return validate(data, name)  # raises with a sentence; or takes what only TOML's own types upset


def _fingerprint(texts: dict[str, bytes]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    shape = {name: (PACKAGE / name).read_bytes() for name in ("entry.py", "evidence.py", "values.py")}
    for name, text in {**texts, **shape}.items():
        digest.update(f"{name} {len(text)} ".encode() + text)
    return digest.hexdigest()


def _places() -> Iterator[Path]:
    """Yield where the parsed entries may be kept, best first."""
    yield PACKAGE / "__pycache__" / "entries.json"
    home = os.environ.get("XDG_CACHE_HOME")
    with contextlib.suppress(RuntimeError):  # no home folder at all
        yield (Path(home) if home else Path.home() / ".cache") / "gpu-workbench" / "catalog-entries.json"


def _kept(fingerprint: str) -> list[System] | None:
    for place in _places():
        try:
            kept = msgspec.json.decode(place.read_bytes(), type=_Kept)
        except (OSError, msgspec.DecodeError):
            continue
        if kept.fingerprint == fingerprint:
            return kept.systems
    return None


def _keep(kept: _Kept) -> None:
    """Write ``kept`` to the first place that takes it; nowhere is fine too, it only costs time."""
    data = msgspec.json.encode(kept)
    for place in _places():
        try:
            place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            mine = place.with_suffix(f".{os.getpid()}")  # several kernels may start at once
            mine.write_bytes(data)
            mine.replace(place)
        except OSError:
            continue
        return
