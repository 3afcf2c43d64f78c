"""``workbench doctor``: what works, what does not, and what to do about it."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from rich.text import Text

from workbench.diagnosis import diagnose, to_dict
from workbench.display import Columns
from workbench.finding import Finding, State
from workbench.terminal import add_json_option, say, show

_MARKS = {State.OK: ("✓ ok", "green"), State.NOTE: ("• note", "yellow"), State.PROBLEM: ("✗ problem", "bold red")}


def configure(parser: ArgumentParser) -> None:
    """Add the command's options."""
    parser.description = "Check everything between the notebook and the pool. Exit status 1 if there is a problem."
    add_json_option(parser)
    parser.set_defaults(execute=execute)


def execute(arguments: Namespace) -> int:
    """Make all checks; 1 if something that was set up does not work."""
    if not arguments.json:
        say("Looking ...")
    findings = list(diagnose())
    problems = sum(finding.state is State.PROBLEM for finding in findings)
    show(arguments, _table(findings), {"problems": problems, "findings": [to_dict(one) for one in findings]})
    return 1 if problems else 0


def _table(findings: Sequence[Finding]) -> Columns:
    table = Columns()
    table.show_header = False
    for finding in findings:
        mark, style = _MARKS[finding.state]
        table.add_row(Text(mark, style), Text(finding.subject, "bold"), Text(finding.found))
        if finding.remedy:
            table.add_row("", "", Text(finding.remedy, "italic"))
    return table
