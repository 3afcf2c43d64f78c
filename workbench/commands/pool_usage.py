"""``workbench pool usage``: what was used.

The operator of a pool on this machine sees whose it is; anybody else asks the pool that they are connected to.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec
from rich.text import Text

from gpu_backend.wire.control import AskUsage
from gpu_backend.wire.errors import PoolRefusal
from gpu_backend.wire.views import UsageRow, UsageView
from kernelproxy import settings as client_settings
from kernelproxy.session.amounts import seconds_in_words
from kernelproxy.session.gateway_client import request
from workbench.commands.pool_top import own_pool
from workbench.display import Columns, bytes_in_words
from workbench.sharing import since_day
from workbench.terminal import show

if TYPE_CHECKING:
    from argparse import _SubParsersAction

_Finish = Callable[[ArgumentParser, object], None]
#: Columns that say what a row is about.
_HEADS = {
    "user": ("user", "group"),
    "group": ("group",),
    "session": ("session", "user", "notebook"),
    "notebook": ("user", "notebook"),
    "day": ("day", "user"),
    "class": ("user", "op_class"),
}


def register(parts: _SubParsersAction[ArgumentParser], finish: _Finish) -> None:
    """Add the command; ``finish`` gives a parser what every sub-command of ``pool`` has."""
    one = parts.add_parser("usage", help="show GPU time, memory and traffic of the past")
    one.add_argument("--by", choices=tuple(_HEADS), default="user", help="what is told apart")
    one.add_argument("--since", default="", metavar="DAY", help="2026-01-31, 'today', or 7d for a week back")
    finish(one, execute_usage)


def execute_usage(arguments: Namespace) -> int:
    """Show what was used."""
    state = own_pool(arguments)
    since = since_day(arguments.since, datetime.now().astimezone().date())
    if state is not None:
        from gpu_backend.pool.usage import usage

        view = usage(state, arguments.by, since)
    else:
        answer = request(client_settings.load(), AskUsage(0, arguments.by, since))
        if not isinstance(answer, UsageView):
            raise PoolRefusal("The pool did not answer with its usage. Is its version the same as ours?")
        view = answer
    rows = [_as_dict(row, arguments.by) for row in view.rows]
    quotas = [msgspec.structs.asdict(one) for one in view.quotas]
    told = {"by": view.by, "since": view.since, "user": view.user, "rows": rows, "quotas": quotas}
    show(arguments, table_of_usage(view), told)
    return 0


def table_of_usage(view: UsageView) -> Columns:
    """Return the rows of ``view`` as people read them."""
    heads = _HEADS[view.by]
    table = Columns()
    for head in heads:
        table.add_column(head.replace("_", " "), no_wrap=head == "session")
    counts = () if view.by == "session" else ("sessions",)
    figures = () if view.by == "class" else ("peak", "uploaded", "downloaded")  # not told apart by class
    for heading in (*counts, "GPU time", *figures):
        table.add_column(heading, justify="right")
    for row in view.rows:
        values = {name: getattr(row, name) for name in heads}
        if not row.user and "user" in heads:
            values["user"] = "others"
        shown = {
            "sessions": str(row.sessions),
            "GPU time": seconds_in_words(row.gpu_seconds),
            "peak": bytes_in_words(row.peak_bytes),
            "uploaded": bytes_in_words(row.received_bytes),
            "downloaded": bytes_in_words(row.sent_bytes),
        }
        table.add_row(*map(Text, values.values()), *(shown[heading] for heading in (*counts, "GPU time", *figures)))
    return table


def _as_dict(row: UsageRow, by: str) -> dict[str, Any]:
    fields = msgspec.structs.asdict(row)
    return {name: value for name, value in fields.items() if name in _HEADS[by] or isinstance(value, int | float)}
