"""``workbench pool usage`` and ``workbench pool top``: what was used, and what is used now.

The operator of a pool on this machine sees whose it is; anybody else asks the pool that they are connected to.
"""

from __future__ import annotations

import re
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from time import sleep
from typing import TYPE_CHECKING, Any

import msgspec
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from gpu_backend.pool import commands as pool
from gpu_backend.pool.state import PoolState, at
from gpu_backend.pool.usage import usage
from gpu_backend.wire.control import AskPool, AskUsage
from gpu_backend.wire.errors import PoolRefusal
from gpu_backend.wire.views import PoolView, UsageRow, UsageView
from kernelproxy import settings as client_settings
from kernelproxy.amounts import seconds_in_words
from kernelproxy.gateway_client import request
from workbench.display import bytes_in_words
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
_REFRESH_SECONDS = 1.0


def register(parts: _SubParsersAction[ArgumentParser], finish: _Finish) -> None:
    """Add both commands; ``finish`` gives a parser what every sub-command of ``pool`` has."""
    one = parts.add_parser("usage", help="show GPU time, memory and traffic of the past")
    one.add_argument("--by", choices=tuple(_HEADS), default="user", help="what is told apart")
    one.add_argument("--since", default="", metavar="DAY", help="2026-01-31, 'today', or 7d for a week back")
    finish(one, execute_usage)
    other = parts.add_parser("top", help="watch devices, sessions and the queue")
    finish(other, execute_top)


def execute_usage(arguments: Namespace) -> int:
    """Show what was used."""
    state = at(arguments.state)
    since = since_day(arguments.since, datetime.now().astimezone().date())
    if _is_operators(arguments, state):
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


def execute_top(arguments: Namespace) -> int:
    """Show what is used now, again and again where somebody watches."""
    state = at(arguments.state)
    view = _view(arguments, state)
    if arguments.json or not sys.stdout.isatty():
        show(arguments, _screen(view), _top_as_dict(view))
        return 0
    with Live(_screen(view), console=Console(), screen=True, auto_refresh=False) as live:
        while True:  # until Ctrl-C
            sleep(_REFRESH_SECONDS)
            live.update(_screen(_view(arguments, state)), refresh=True)


def since_day(text: str, today: date) -> str:
    """Return the day that ``text`` means, as the pool is asked for it; "" for ever.

    Raises
    ------
    PoolRefusal
        If it means none.
    """
    if not text or text == "today":
        return text and today.isoformat()
    back = re.fullmatch(r"(\d{1,5})d", text)
    try:
        return (today - timedelta(days=int(back[1])) if back else date.fromisoformat(text)).isoformat()
    except (ValueError, OverflowError):
        raise PoolRefusal(f"{text!r} is no day: write 2026-01-31, 'today', or 7d for a week back.") from None


def table_of_usage(view: UsageView) -> Table:
    """Return the rows of ``view`` as people read them."""
    heads = _HEADS[view.by]
    table = Table(*[head.replace("_", " ") for head in heads], box=None, padding=(0, 2, 0, 0))
    figures = ("sessions", "GPU time", "peak memory", "to the GPU", "from the GPU")
    for heading in figures[:2] if view.by == "class" else figures:  # memory is not told apart by class
        table.add_column(heading, justify="right")
    for row in view.rows:
        values = {name: getattr(row, name) for name in heads}
        if not row.user and "user" in heads:
            values["user"] = "others"
        amounts = () if view.by == "class" else (row.peak_bytes, row.received_bytes, row.sent_bytes)
        table.add_row(
            *(Text(value) for value in values.values()), str(row.sessions), seconds_in_words(row.gpu_seconds),
            *map(bytes_in_words, amounts),
        )  # fmt: skip
    return table


def _is_operators(arguments: Namespace, state: PoolState) -> bool:
    return arguments.state is not None or state.operator_key.exists()


def _view(arguments: Namespace, state: PoolState) -> PoolView:
    if _is_operators(arguments, state):
        return pool.status(state)
    answer = request(client_settings.load(), AskPool(0))
    if not isinstance(answer, PoolView):
        raise PoolRefusal("The pool did not answer with its state. Is its version the same as ours?")
    return answer


def _as_dict(row: UsageRow, by: str) -> dict[str, Any]:
    fields = msgspec.structs.asdict(row)
    return {name: value for name, value in fields.items() if name in _HEADS[by] or isinstance(value, int | float)}


def _top_as_dict(view: PoolView) -> dict[str, Any]:
    parts: dict[str, Sequence[msgspec.Struct]] = {
        "devices": view.devices, "sessions": view.sessions, "waiting": view.waiting,
    }  # fmt: skip
    told = {name: [msgspec.structs.asdict(one) for one in part] for name, part in parts.items()}
    return {"pool": view.pool, "user": view.user, **told}


def _screen(view: PoolView) -> Group:
    parts: list[RenderableType] = [Text(f"Pool {view.pool}", "bold"), _devices(view), Text(), _sessions(view)]
    if view.waiting:
        parts += [Text(), _waiting(view)]
    return Group(*parts)


def _devices(view: PoolView) -> Table:
    table = Table("device", "name", "busy", "memory", "sessions", box=None, padding=(0, 2, 0, 0))
    for one in view.devices:
        memory = f"{bytes_in_words(one.used_bytes)} of {bytes_in_words(one.total_bytes)}"
        sessions = f"{one.sessions} of {one.capacity}"
        table.add_row(f"{one.node}/{one.kind}{one.ordinal}", Text(one.name), f"{one.busy:.0%}", memory, sessions)
    return table


def _sessions(view: PoolView) -> Table:
    table = Table("session", "user", "notebook", "state", "class", "device", box=None, padding=(0, 2, 0, 0))
    for heading in ("busy", "GPU time", "memory", "peak", "moved"):
        table.add_column(heading, justify="right")
    for one in sorted(view.sessions, key=lambda session: (-session.busy, session.opened_at)):
        kind = f"{one.kind} (over quota)" if one.is_over_quota else one.kind
        amounts = map(bytes_in_words, (one.used_bytes, one.peak_bytes, one.moved_bytes))
        figures = (f"{one.busy:.0%}", seconds_in_words(one.gpu_seconds), *amounts) if one.user else ()
        table.add_row(
            one.session or "-", Text(one.user or "another"), Text(one.label), one.state, kind,
            f"{one.node}/{one.device}", *figures,
        )  # fmt: skip
    return table


def _waiting(view: PoolView) -> Table:
    table = Table("waiting", "user", "notebook", "for", box=None, padding=(0, 2, 0, 0))
    for one in view.waiting:
        who = Text(one.user or "another")
        table.add_row(str(one.place), who, Text(one.label), seconds_in_words(one.waited_seconds))
    return table
