"""The sub-commands of ``%catalog`` and ``workbench catalog``: one grammar for both.

A command line becomes a result object; who asked decides how to show it.
"""

from __future__ import annotations

import argparse
import re
import textwrap
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec

import catalog
from catalog.entry import System
from catalog.field import fields
from catalog.nearest import did_you_mean
from catalog.relations import KINDS

if TYPE_CHECKING:
    from catalog.chart import Chart
    from catalog.render.displayed import Displayed

__all__ = ["COMMANDS", "CommandError", "Helped", "as_json", "command_name", "parse", "perform"]

#: Sub-commands with what they do, in the order in which help lists them.
COMMANDS = {
    "list": "systems as a table, all or those that fit FIELD=VALUE",
    "show": "everything known of one system",
    "search": "systems whose entries contain the words",
    "compare": "systems side by side",
    "choose": "systems that fit your answers to five questions, with reasons",
    "plot": "claims of one measure on one scale",
    "who": "who measured whom",
    "verdicts": "what is claimed, and what was found on this pool",
    "timeline": "systems over the years",
    "graph": "relations between systems, all or around one",
    "cite": "references and BibTeX",
    "try": "what of a system runs on this pool, and the cell that shows it",
}

_FILTER = re.compile(r"([A-Za-z][\w.-]*)\s*(>=|<=|=|>|<)\s*(.+)")


class CommandError(ValueError):
    """A command line that cannot be understood; one sentence."""


class Helped(Exception):
    """The user asked for help; ``str`` of it is the text."""


class _Parser(argparse.ArgumentParser):
    """Raises instead of printing and leaving, since a notebook must survive a typing mistake."""

    def error(self, message: str) -> NoReturn:
        unknown = re.search(r"unrecognized arguments: (\S+)", message)
        if unknown:
            options = [option for action in self._actions for option in action.option_strings]
            message = f"unknown option {unknown[1]!r}{did_you_mean(unknown[1], options)}"
        raise CommandError(message)

    def print_help(self, file: Any = None) -> None:
        raise Helped(self.format_help())


def command_name(word: str) -> str:
    """Return ``word`` if it is a sub-command.

    Raises
    ------
    CommandError
        If not, with the nearest one.
    """
    if word not in COMMANDS:
        known = f"; there are {', '.join(COMMANDS)}" if not word else ""
        raise CommandError(f"no sub-command is named {word!r}{did_you_mean(word, COMMANDS)}{known}")
    return word


def parse(words: Sequence[str], program: str) -> argparse.Namespace:
    """Read a command line.

    Parameters
    ----------
    words
        The sub-command and what follows it.
    program
        What help calls the command: ``%catalog`` or ``workbench catalog``.

    Raises
    ------
    CommandError
        If it cannot be understood.
    Helped
        If it asks for help.
    """
    if not words or words[0] in {"-h", "--help"}:
        raise Helped(_overview(program))
    name = command_name(words[0])
    parser = parser_of(name, program)
    arguments = parser.parse_args(_joined(words[1:]))
    arguments.command = name
    return arguments


def _joined(words: Sequence[str]) -> list[str]:
    """Join ``--sort -year`` to ``--sort=-year``, which argparse would take for two options."""
    out: list[str] = []
    for word in words:
        if out and out[-1] == "--sort":
            out[-1] = f"--sort={word}"
        else:
            out.append(word)
    return out


def parser_of(name: str, program: str) -> argparse.ArgumentParser:
    """Return the parser of one sub-command."""
    parser = _Parser(prog=f"{program} {name}", description=COMMANDS[name], allow_abbrev=False)
    parser.add_argument("--json", action="store_true", help="print the data as JSON")
    if name in {"list", "timeline", "who", "verdicts"}:
        parser.add_argument(
            "filters",
            nargs="*",
            metavar="FIELD=VALUE",
            help="sharing=temporal,spatial year=2020-2023 claims.overhead<5",
        )
    if name in {"show", "try", "search"}:
        parser.add_argument("words", nargs="+", metavar="WORD" if name == "search" else "NAME")
    if name == "choose":
        parser.add_argument("answers", nargs="*", metavar="QUESTION=ANSWER", help="trusted=no goal=latency")
    if name == "plot":
        parser.add_argument("measure", metavar="MEASURE", help="overhead, throughput, latency, ...")
        parser.add_argument("filters", nargs="*", metavar="FIELD=VALUE", help="only these systems")
    if name == "graph":
        parser.add_argument("words", nargs="*", metavar="NAME", help="only relations of this system")
        parser.add_argument("--kind", type=_commas, metavar="KIND,...", help=f"of {', '.join(KINDS)}")
    if name == "compare":
        parser.add_argument("names", nargs="+", metavar="NAME")
    if name == "cite":
        parser.add_argument("names", nargs="*", metavar="NAME")
    if name in {"list", "search", "compare"}:
        parser.add_argument("--fields", type=_commas, metavar="FIELD,...", help="which to show")
    if name == "list":
        parser.add_argument("--sort", type=_commas, metavar="FIELD,...", help="-FIELD for the other way round")
    if name in {"timeline", "graph", "plot"}:
        parser.add_argument("--save", metavar="FILE", help="draw with matplotlib into FILE (.svg, .png, .pdf)")
    return parser


def perform(arguments: argparse.Namespace) -> Displayed | System:
    """Return the result of a command line that was read by :func:`parse`.

    Raises
    ------
    CatalogError
        If it asks for something that the catalogue does not have.
    """
    return _ACTIONS[arguments.command](arguments)


def as_json(result: Displayed | System) -> str:
    """Return a result's data as JSON text."""
    if isinstance(result, System):
        return msgspec.json.format(msgspec.json.encode(result), indent=2).decode()
    return result.to_json()


def _overview(program: str) -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {program} {name.ljust(width)}  {about}" for name, about in COMMANDS.items()]
    names = [name for name in fields() if "." not in name]
    return "\n".join(
        [
            "What this field invented: GPU disaggregation and sharing systems.",
            "",
            *lines,
            "",
            textwrap.fill(f"Fields: {', '.join(names)}, claims.MEASURE.", 100),
            f"More on each: {program} list --help.",
        ]
    )


def _commas(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _criteria(words: Sequence[str]) -> dict[str, Any]:
    """Read ``FIELD=VALUE,VALUE`` and ``year>=2020`` into what ``filter`` takes."""
    criteria: dict[str, Any] = {}
    for word in words:
        match = _FILTER.fullmatch(word)
        if match is None:
            raise CommandError(f"{word!r} is not of the form FIELD=VALUE; to look for words use search {word}")
        name, sign, value = match.groups()
        if sign == "=":
            criteria[name] = _commas(value)
        elif name == "year":
            criteria[name] = f"{sign}{value}"
        elif name.startswith("claims."):
            criteria[name] = [*criteria.get(name, []), f"{sign}{value}"]
        else:
            raise CommandError(f"{name} has no order to compare by; only year and claims.MEASURE have")
    return criteria


def _list(arguments: argparse.Namespace) -> Displayed:
    found = catalog.systems(**_criteria(arguments.filters))
    for name in reversed(arguments.sort or []):
        found = found.sort(name.removeprefix("-"), reverse=name.startswith("-"))
    return found.show(*arguments.fields) if arguments.fields else found


def _search(arguments: argparse.Namespace) -> Displayed:
    found = catalog.search(" ".join(arguments.words))
    return found.show(*arguments.fields) if arguments.fields else found


def _compare(arguments: argparse.Namespace) -> Displayed:
    names = [part for name in arguments.names for part in _commas(name)]
    return catalog.compare(names, arguments.fields)


def _choose(arguments: argparse.Namespace) -> Displayed:
    answers: dict[str, str] = {}
    for word in arguments.answers:
        name, sign, answer = word.partition("=")
        if not sign:
            raise CommandError(f"{word!r} is not of the form QUESTION=ANSWER, such as trusted=no")
        answers[name] = answer
    return catalog.choose(**answers)


def _plot(arguments: argparse.Namespace) -> Displayed:
    return _saved(catalog.plot(arguments.measure, **_criteria(arguments.filters)), arguments)


def _timeline(arguments: argparse.Namespace) -> Displayed:
    return _saved(catalog.timeline(**_criteria(arguments.filters)), arguments)


def _graph(arguments: argparse.Namespace) -> Displayed:
    return _saved(catalog.graph(" ".join(arguments.words), arguments.kind), arguments)


def _saved(chart: Chart, arguments: argparse.Namespace) -> Displayed:
    if arguments.save:
        try:
            chart.save(arguments.save)
        except (ModuleNotFoundError, OSError, ValueError) as refused:
            raise CommandError(f"cannot draw into {arguments.save}: {refused}") from None
    return chart


_ACTIONS: dict[str, Callable[[argparse.Namespace], Displayed | System]] = {
    "list": _list,
    "show": lambda arguments: catalog.get(" ".join(arguments.words)),
    "search": _search,
    "compare": _compare,
    "choose": _choose,
    "plot": _plot,
    "who": lambda arguments: catalog.measurements(**_criteria(arguments.filters)),
    "verdicts": lambda arguments: catalog.verdicts(**_criteria(arguments.filters)),
    "timeline": _timeline,
    "graph": _graph,
    "cite": lambda arguments: catalog.cite(*arguments.names),
    "try": lambda arguments: catalog.trial(" ".join(arguments.words)),
}
