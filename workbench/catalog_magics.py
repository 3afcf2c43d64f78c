"""``%catalog``: the catalogue in a notebook.

``load`` and ``unload`` are called by the workbench's IPython extension.
"""

from __future__ import annotations

import re
import shlex
import sys
from typing import Any

from IPython.core.completer import SimpleCompletion, context_matcher
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, line_magic, magics_class

__all__ = ["CatalogMagics", "load", "unload"]

_LINE = re.compile(r"(?:^|[=(])\s*%catalog\s+(?P<words>[^\n]*)$")


@magics_class
class CatalogMagics(Magics):
    """The line magic ``%catalog``."""

    @line_magic
    def catalog(self, line: str) -> Any:
        """Look up GPU disaggregation and sharing systems.

        %catalog list sharing=temporal year=2020-2023 --sort year --fields name,venue,code
        %catalog show tgs
        %catalog search unified memory
        %catalog compare tgs antman gemini --fields interception,scheduling,claims.overhead
        %catalog choose trusted=no kubernetes=no goal=latency
        %catalog plot overhead
        %catalog verdicts
        %catalog who
        %catalog timeline
        %catalog graph tgs
        %catalog cite tgs antman
        %catalog try rcuda

        Each returns an object: ``found = %catalog search preemption``, then ``found.to_pandas()``.
        """
        from catalog.commands import CommandError, Helped, as_json, parse, perform
        from catalog.errors import CatalogError
        from catalog.tryout import Trial
        from catalog.validation import MalformedEntry

        try:
            arguments = parse(shlex.split(line), "%catalog")
            result = perform(arguments)
        except Helped as text:
            sys.stdout.write(f"{text}\n")
            return None
        except (CommandError, CatalogError, MalformedEntry, ValueError) as refused:
            # ValueError: a quotation mark that shlex found no partner for.
            raise UsageError(f"%catalog: {refused}") from None
        if arguments.json:
            sys.stdout.write(as_json(result) + "\n")
            return None
        if isinstance(result, Trial) and result.cell and self.shell is not None:
            self.shell.set_next_input(result.cell)
        return result


@context_matcher(identifier="workbench.catalog")  # type: ignore[untyped-decorator]
def catalog_matcher(context: Any) -> dict[str, Any]:
    """Complete sub-commands, systems, fields, terms and options behind ``%catalog``."""
    match = _LINE.search(context.text_until_cursor)
    if match is None:
        return {"completions": [], "suppress": False}
    from catalog.completion import completions

    fragment, words = completions(match["words"])
    return {
        "completions": [SimpleCompletion(word, type="param") for word in words],
        "matched_fragment": fragment,
        "suppress": True,
        "ordered": True,
    }


def load(ipython: InteractiveShell) -> None:
    """Give ``ipython`` the magic and its completion; a second call changes nothing."""
    ipython.register_magics(CatalogMagics)
    if catalog_matcher not in ipython.Completer.custom_matchers:
        ipython.Completer.custom_matchers.append(catalog_matcher)


def unload(ipython: InteractiveShell) -> None:
    """Take back what :func:`load` gave."""
    ipython.magics_manager.magics["line"].pop("catalog", None)
    ipython.magics_manager.registry.pop(CatalogMagics.__name__, None)
    if catalog_matcher in ipython.Completer.custom_matchers:
        ipython.Completer.custom_matchers.remove(catalog_matcher)
