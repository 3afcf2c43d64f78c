"""Files that only their owner can read, written all or nothing: keys, settings, what processes tell each other."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def write_private(path: Path, data: bytes) -> None:
    """Write a file that only its owner can read, all or nothing; where it holds the same already, nothing."""
    with suppress(OSError):
        if path.read_bytes() == data:
            return
    replace_private(path, data)


def replace_private(path: Path, data: bytes) -> None:
    """Write a file that only its owner can read, all or nothing, in the place of any that is there.

    Raises
    ------
    OSError
        If that cannot be; it names ``path``, and nothing is left of the attempt.
    """
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(data)
        fresh.replace(path)
    except BaseException as error:  # a full disk, say, or an interrupt: what is secret is not to lie about
        with suppress(OSError):
            fresh.unlink()
        if isinstance(error, OSError):
            error.filename, error.filename2 = str(path), None  # that of the attempt says nothing to anybody
        raise
