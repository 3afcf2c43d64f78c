"""``workbench pool top``: devices, sessions and the queue, as they are now.

The operator of a pool on this machine sees whose it is; anybody else asks the pool that they are connected to.
"""

from __future__ import annotations

import os
import select
import sys
import termios
import tty
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec
from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from gpu_backend.wire.control import AskPool
from gpu_backend.wire.errors import PoolRefusal, PoolUnreachable
from gpu_backend.wire.views import PoolView
from kernelproxy import settings as client_settings
from kernelproxy.session.amounts import seconds_in_words
from kernelproxy.session.gateway_client import request
from workbench.display import Columns, bytes_in_words
from workbench.nodes import places_in_words
from workbench.terminal import show

if TYPE_CHECKING:
    from argparse import _SubParsersAction

    from gpu_backend.pool.state import PoolState

_Finish = Callable[[ArgumentParser, object], None]
_REFRESH_SECONDS = 1.0
#: A terminal of fewer columns is shown less of each session: what is cut says nothing.
_WIDE = 120
_LEAVE = "Press q to leave."


def register(parts: _SubParsersAction[ArgumentParser], finish: _Finish) -> None:
    """Add the command; ``finish`` gives a parser what every sub-command of ``pool`` has."""
    finish(parts.add_parser("top", help="watch devices, sessions and the queue; q leaves"), execute)


def execute(arguments: Namespace) -> int:
    """Show what is used now, again and again where somebody watches."""
    state = own_pool(arguments)
    view = _view(state)
    if arguments.json or not sys.stdout.isatty():
        show(arguments, _screen(view), _as_dict(view))
        return 0
    with _keys() as pressed, Live(screen=True, auto_refresh=False) as live:
        _watch(state, view, pressed, live)
    return 0


def _watch(state: PoolState | None, view: PoolView, pressed: Callable[[float], str], live: Live) -> None:
    """Show what is used every second until q is pressed."""
    note = _LEAVE
    live.update(_screen(view, note, live.console.width >= _WIDE), refresh=True)
    while pressed(_REFRESH_SECONDS) not in ("q", "Q"):
        try:
            view, note = _view(state), _LEAVE
        except PoolUnreachable as error:  # a gateway that is started anew is back in a moment
            note = f"{error} This is how it was before. {_LEAVE}"
        live.update(_screen(view, note, live.console.width >= _WIDE), refresh=True)


def own_pool(arguments: Namespace) -> PoolState | None:
    """Return the pool of this machine that is meant; None for the one that this user is connected to."""
    try:
        from gpu_backend.pool.state import at
    except ModuleNotFoundError as error:  # where only the notebook's side is installed there is no pool
        if arguments.state is None:
            return None
        raise PoolRefusal(
            f"The pool in {arguments.state} cannot be read without {error.name}: only the notebook's side is installed "
            "here. Run `pip install 'gpu-workbench[pool]'`, or leave --state out to ask the pool you are connected to."
        ) from error
    state = at(arguments.state)
    return state if arguments.state is not None or state.operator_key.exists() else None


@contextmanager
def _keys() -> Iterator[Callable[[float], str]]:
    """Have a function that waits so many seconds for a key, and returns it; "" if none is pressed."""
    if not sys.stdin.isatty():
        yield lambda seconds: _pressed([], seconds)
        return
    before = termios.tcgetattr(sys.stdin)
    tty.setcbreak(sys.stdin)
    try:
        yield lambda seconds: _pressed([sys.stdin.fileno()], seconds)
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def _pressed(descriptors: Sequence[int], seconds: float) -> str:
    ready, _, _ = select.select(descriptors, (), (), seconds)
    return os.read(ready[0], 1).decode(errors="replace") if ready else ""


def _view(state: PoolState | None) -> PoolView:
    if state is not None:
        from gpu_backend.pool import commands as pool

        return pool.status(state)
    answer = request(client_settings.load(), AskPool(0))
    if not isinstance(answer, PoolView):
        raise PoolRefusal("The pool did not answer with its state. Is its version the same as ours?")
    return answer


def _as_dict(view: PoolView) -> dict[str, Any]:
    parts: dict[str, Sequence[msgspec.Struct]] = {
        "devices": view.devices, "sessions": view.sessions, "waiting": view.waiting,
    }  # fmt: skip
    told = {name: [msgspec.structs.asdict(one) for one in part] for name, part in parts.items()}
    return {"pool": view.pool, "user": view.user, **told}


def _screen(view: PoolView, note: str = "", is_wide: bool = True) -> Group:
    parts: list[RenderableType] = [Text(f"Pool {view.pool}", "bold"), _devices(view), Text(), _sessions(view, is_wide)]
    if view.waiting:
        parts += [Text(), _waiting(view)]
    if note:
        parts += [Text(), Text(note, "dim")]
    return Group(*parts)


def _devices(view: PoolView) -> Columns:
    table = Columns("device", "name", "busy", "memory", "sessions")
    for one in view.devices:
        memory = f"{bytes_in_words(one.used_bytes)} of {bytes_in_words(one.total_bytes)}"
        sessions = f"{one.sessions} of {one.capacity}"
        table.add_row(f"{one.node}/{one.kind}{one.ordinal}", Text(one.name), f"{one.busy:.0%}", memory, sessions)
    return table


def _sessions(view: PoolView, is_wide: bool) -> Columns:
    table = Columns("user", "notebook", "state", "class", "device")
    for heading in ("busy", "GPU time", "memory", *(("peak", "moved") if is_wide else ())):
        table.add_column(heading, justify="right", no_wrap=True)
    if is_wide:
        table.add_column("session", no_wrap=True)
    for one in sorted(view.sessions, key=lambda session: (-session.busy, session.opened_at)):
        kind = f"{one.kind} (over quota)" if one.is_over_quota else one.kind
        amounts = (one.used_bytes, one.peak_bytes, one.moved_bytes) if is_wide else (one.used_bytes,)
        figures = [f"{one.busy:.0%}", seconds_in_words(one.gpu_seconds), *map(bytes_in_words, amounts)]
        if not one.user:
            figures = [""] * len(figures)
        told = [*figures, one.session or "-"] if is_wide else figures
        table.add_row(
            Text(one.user or "another"), Text(one.label), one.state, kind, places_in_words(one), *told
        )  # fmt: skip
    return table


def _waiting(view: PoolView) -> Columns:
    table = Columns("waiting", "user", "notebook", "for")
    for one in view.waiting:
        who = Text(one.user or "another")
        table.add_row(str(one.place), who, Text(one.label), seconds_in_words(one.waited_seconds))
    return table
