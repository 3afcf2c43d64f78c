"""What was typed is no command line: told apart from what could not be done, by the exit status."""

from __future__ import annotations

from gpu_backend.wire.errors import PoolRefusal


class WrongUsage(PoolRefusal):
    """Something is missing on the command line, or means nothing there; the message says what. Exit status 2."""
