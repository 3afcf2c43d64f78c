"""``workbench catalog …``: the catalogue in a terminal."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from catalog.entry import System
    from catalog.render.displayed import Displayed

__all__ = ["execute", "register"]


def register(subparsers: Any) -> None:
    """Add the sub-command ``catalog`` to the command line.

    Called by the command line's own parser when it is built. The grammar behind ``catalog`` is read only when the
    sub-command is used, so that the others start no slower.

    Parameters
    ----------
    subparsers
        What ``ArgumentParser.add_subparsers()`` returned. The parser's defaults get ``execute``, a function from
        the parsed arguments to an exit status.
    """
    about = "GPU disaggregation and sharing systems: what they are, claim, and share with this pool"
    # All words are the grammar's own, --help among them: no argument can begin with the prefix that is left to options.
    parser = subparsers.add_parser("catalog", help=about, description=about, add_help=False, prefix_chars="\0")
    parser.add_argument("words", nargs=argparse.REMAINDER, help="a sub-command and what belongs to it")
    parser.set_defaults(execute=execute)


def execute(arguments: argparse.Namespace) -> int:
    """Carry out ``workbench catalog`` and return the exit status: 0, or 2 for what cannot be understood."""
    from catalog.commands import CommandError, Helped, as_json, parse, perform
    from catalog.errors import CatalogError
    from catalog.validation import MalformedEntry

    try:
        command = parse(arguments.words, "workbench catalog")
        result = perform(command)
        if command.json:
            sys.stdout.write(as_json(result) + "\n")
        else:
            _print(result)
    except Helped as text:
        sys.stdout.write(f"{text}\n")
    except (CommandError, CatalogError, MalformedEntry) as refused:
        sys.stderr.write(f"workbench catalog: {refused}\n")
        return 2
    return 0


def _print(result: Displayed | System) -> None:
    if not sys.stdout.isatty():
        # What reads a pipe or a file wants lines that do not depend on a window.
        sys.stdout.write(f"{result}\n")
        return
    from rich.console import Console

    from catalog.entry import System
    from catalog.render.terminal import render
    from catalog.show import system_document

    document = system_document(result) if isinstance(result, System) else result.document()
    Console().print(render(document), highlight=False)
