"""What the sub-commands of ``workbench pool`` have alike: their options, what may follow a noun, how one is another."""

from __future__ import annotations

import os
from argparse import ArgumentParser
from pathlib import Path

from workbench.terminal import add_json_option

#: How ``list`` was called for some of the nouns.
_FORMER = {"show": "list"}


def finish(parser: ArgumentParser, execute: object) -> None:
    """Give ``parser`` what every sub-command has."""
    parser.add_argument("--state", type=Path, metavar="DIR", help="where the pool keeps its records and keys")
    add_json_option(parser)
    parser.set_defaults(execute=execute)


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


def become(command: list[str]) -> None:
    """Run ``command`` in the place of this process, under its number: whoever has started us watches that."""
    os.execv(command[0], command)
