"""What ``workbench pool`` can do for everybody who is connected to one, with the notebook's side only."""

from __future__ import annotations

from argparse import ArgumentParser

from workbench.commands import pool_top, pool_usage
from workbench.commands.pool_actions import finish


def configure(parser: ArgumentParser) -> None:
    """Add the sub-commands."""
    parts = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    pool_usage.register(parts, finish)
    pool_top.register(parts, finish)
