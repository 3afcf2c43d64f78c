"""Why an arbiter ended an executor: a note in its own directory, for the agent, who tells the notebook.

Executors go by `roster.name_of`.
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["note", "noted", "remove"]

_FOLDER = "ended"


def note(directory: Path, name: str, reason: str) -> None:
    """Note in an arbiter's ``directory`` why it is about to end the executor ``name``, all or nothing."""
    path = _path(directory, name)
    path.parent.mkdir(mode=0o700, exist_ok=True)
    fresh = path.with_name(f".{path.name}")
    fresh.write_text(reason)
    fresh.replace(path)


def noted(directory: Path, name: str) -> str:
    """Return why the arbiter in ``directory`` ended the executor ``name``; empty if it did not."""
    try:
        return _path(directory, name).read_text()
    except OSError:
        return ""


def remove(directory: Path, name: str) -> None:
    """Forget an executor that has ended."""
    _path(directory, name).unlink(missing_ok=True)


def _path(directory: Path, name: str) -> Path:
    return directory / _FOLDER / name
