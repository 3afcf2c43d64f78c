"""What may follow a noun of ``workbench pool``: ``list`` for each of them, and what changes something."""

from __future__ import annotations

from argparse import ArgumentParser

#: How ``list`` was called for some of the nouns.
_FORMER = {"show": "list"}


def add_action(parser: ArgumentParser, *changes: str) -> None:
    """Let one of ``changes`` be said, or ``list``, which is also what is meant where nothing is said."""
    parser.add_argument(
        "action",
        nargs="?",
        type=lambda word: _FORMER.get(word, word),
        choices=("list", *changes),
        default="list",
        help="list, which is the default, shows them all; each of the others changes something first",
    )
