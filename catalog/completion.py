"""What could come next on a ``%catalog`` line."""

from __future__ import annotations

from collections.abc import Iterable

from catalog.choice import QUESTIONS
from catalog.commands import COMMANDS, parser_of
from catalog.field import Field, fields
from catalog.loader import entries
from catalog.relations import KINDS
from catalog.taxonomy import taxonomy

__all__ = ["completions"]


def completions(line: str) -> tuple[str, list[str]]:
    """Return the fragment at the end of ``line`` and the words that may stand in its place.

    Parameters
    ----------
    line
        What was typed after the command word, up to the cursor: ``"compare tgs ant"``.
    """
    *before, fragment = line.split(" ")
    words = [word for word in before if word]
    if not words:
        return fragment, _starting(fragment, COMMANDS)
    command, last = words[0], words[-1]
    if command not in COMMANDS:
        return fragment, []
    if last in {"--fields", "--sort"}:
        return _list(fragment, fields(), minus=last == "--sort")
    if last == "--kind":
        return _list(fragment, KINDS)
    if fragment.startswith("-"):
        actions = parser_of(command, "")._option_string_actions
        return fragment, _starting(fragment, (option for option in actions if len(option) > 2))
    if command == "plot" and not words[1:]:
        return fragment, _starting(fragment, taxonomy().measures)
    if command == "choose":
        return _answer(fragment)
    if command in {"list", "timeline", "plot", "who", "verdicts"}:
        return _filter(fragment)
    if command in {"show", "try", "graph", "compare", "cite"}:
        return fragment, _starting(fragment, (name for name in entries() if name not in words))
    return fragment, []


def _starting(fragment: str, known: Iterable[str]) -> list[str]:
    return [name for name in known if name.startswith(fragment)]


def _list(fragment: str, known: Iterable[str], *, minus: bool = False) -> tuple[str, list[str]]:
    """Complete the last of several names separated by commas."""
    *done, last = fragment.split(",")
    if minus:
        last = last.removeprefix("-")
    return last, _starting(last, (name for name in known if name not in done))


def _filter(fragment: str) -> tuple[str, list[str]]:
    """Complete a field's name, or after the sign one of its values."""
    name, sign, value = fragment.partition("=")
    if not sign:
        return fragment, [f"{each}=" for each in _starting(fragment, fields()) if "." not in each]
    known = fields().get(name)
    return _list(value, _values(known)) if known else (value, [])


def _answer(fragment: str) -> tuple[str, list[str]]:
    """Complete a question's name, or after the sign one of its answers."""
    name, sign, answer = fragment.partition("=")
    answers = {each.name: each.answers for each in QUESTIONS}
    if sign:
        return answer, _starting(answer, answers.get(name, ()))
    return fragment, [f"{each}=" for each in _starting(fragment, answers)]


def _values(of: Field) -> list[str]:
    """Return the field's vocabulary, or the short values that occur."""
    if of.terms:
        return list(of.terms)
    found = {str(value) for system in entries().values() for value in of.values(system)}
    return sorted(value for value in found if " " not in value and len(value) < 40)
