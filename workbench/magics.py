"""The magic ``%gpu``: one word, with sub-commands."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from IPython.core.completer import CompletionContext, SimpleCompletion, context_matcher
from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_cell_magic, magics_class, no_var_expand
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring

from gpu_backend.wire.bounds import PRIORITY
from gpu_backend.wire.control import AskUsage
from gpu_backend.wire.errors import PoolError, PoolRefusal, quoted
from gpu_backend.wire.views import UsageView
from kernelproxy import settings
from kernelproxy.client import Client, current
from kernelproxy.session.gateway_client import request
from workbench import connecting
from workbench.display import Facts, Json
from workbench.sharing import SharingFacts, UsageFacts, since_day
from workbench.status import GpuStatus, pool_at
from workbench.timing import Timing, measure
from workbench.tracebacks import Tracebacks
from workbench.ways import WaysFacts

if TYPE_CHECKING:
    from argparse import Namespace

    from IPython.core.completer import SimpleMatcherResult
    from IPython.core.interactiveshell import InteractiveShell

_CLASSES = ("best-effort", "interactive", "production")
_GROUPINGS = ("user", "session", "notebook", "day", "class")
_SHOWN = ("full", "short")
_OPTIONS = {
    "status": ("--all", "--json"),
    "timeit": ("-n", "-r", "-q", "-o"),
    "ways": ("--json",),
    "tracebacks": _SHOWN,
    "class": (*_CLASSES, "--request", "--limit", "--priority", "--json"),
    "devices": ("--drop-arrays", "--json"),
    "usage": ("--by", "--since", "--json"),
    "connect": ("--server-key", "--key-file", "--drop-arrays", "--json"),
}
#: A pool's public key as it is given, in which there may be any of ``{}$``: it has 40 characters.
_SERVER_KEY = re.compile(r"""(--server-key[= ]\s*(?:'[^']{40}'|"[^"]{40}"|\S{40}(?!\S)))""")
#: From `InteractiveShell.var_expand` to whoever runs the magic: by way of `_expanded`, `gpu` and IPython's own method.
_FRAMES = 3


@magics_class
class GpuMagics(Magics):
    """The magic ``%gpu``. Each of its commands returns an object: ``state = %gpu status`` works."""

    def __init__(self, shell: InteractiveShell) -> None:
        super().__init__(shell)
        #: How errors are shown here.
        self.tracebacks = Tracebacks(shell)

    @magic_arguments()
    @argument("command", nargs="?", default="status", choices=tuple(_OPTIONS), help="What to do; status by default.")
    @argument("word", nargs="?", default="", help="connect: the gateway's address. class: its name. devices: how many.")
    @argument("--all", action="store_true", help="status: all that is known.")
    @argument("--server-key", default="", help="connect: the pool's public key, 40 characters.")
    @argument("--key-file", default="", help="connect: the file with your own key pair.")
    @argument("--drop-arrays", action="store_true", help="connect, devices: leave the present session; its arrays go.")
    @argument("--request", type=float, help="class: a guaranteed part of the device's time, 0 to 1.")
    @argument("--limit", type=float, help="class: the largest part of the device's time, 0 to 1.")
    @argument("--priority", type=int, help="class: higher goes first, where the pool's policy looks at it.")
    @argument("--by", default="day", choices=_GROUPINGS, help="usage: what is told apart.")
    @argument("--since", default="", help="usage: 2026-01-31, today, or 7d for a week back.")
    @argument("--json", action="store_true", help="Return the same as JSON.")
    @no_var_expand
    @line_cell_magic
    def gpu(self, line: str, cell: str | None = None) -> Facts | Json | Timing | None:
        """Show or change where this notebook computes, and time what it does there.

        ``%gpu status`` shows device, memory, what runs and what waits, at once; ``--all`` adds the rest. ``%gpu
        connect`` takes a session now rather than at the first array; with an address it connects to another pool
        first. ``%gpu class`` shows how the session shares its device, ``%gpu class best-effort`` changes it. ``%gpu
        devices 2`` takes a session with two devices of one node, or one for each of two, or says how many could be had.
        ``%gpu usage`` shows what you have used, and your limits. ``%gpu ways`` tells how your operations were carried
        out, and why not faster. ``%gpu timeit STATEMENT`` is ``%timeit`` that waits for the device; ``-n`` loops,
        ``-r`` runs, ``-q`` says nothing, ``-o`` returns the times; as ``%%gpu timeit`` it times a cell. ``%gpu
        tracebacks full`` shows our own frames in tracebacks too, ``%tb`` then the last one again; ``short`` hides
        them.
        """
        first, _, rest = line.strip().partition(" ")
        if first == "timeit":
            return self._timeit(rest, cell)
        if cell is not None:
            raise UsageError("%%gpu times a cell: %%gpu timeit. All else is for a line: %gpu status")
        wanted = parse_argstring(self.gpu, self._expanded(line))
        shown: Facts
        if wanted.command == "class":
            shown = _class(wanted)
        elif wanted.command == "devices":
            _take_devices(wanted)
            shown = GpuStatus.now(wanted.all)
        elif wanted.command == "tracebacks":
            self._show_tracebacks(wanted.word)
            return None
        elif wanted.word and wanted.command != "connect":
            raise UsageError(
                f"%gpu {wanted.command} takes no {quoted(wanted.word)}. Did you mean: %gpu connect {wanted.word:.60}"
            )
        elif wanted.command == "usage":
            shown = _usage(wanted)
        elif wanted.command == "ways":
            shown = _ways()
        else:
            if wanted.command == "connect":
                _connect(wanted)
            shown = GpuStatus.now(wanted.all)
        return Json(shown.to_dict()) if wanted.json else shown

    def _expanded(self, line: str) -> str:
        """Return ``line`` with the values of ``{names}`` and ``$names``, as IPython expands it; a key as it is."""
        assert self.shell is not None  # whoever registers magics has one
        parts = _SERVER_KEY.split(line)
        for place in range(0, len(parts), 2):
            parts[place] = self.shell.var_expand(parts[place], _FRAMES)
        return "".join(parts)

    def _show_tracebacks(self, word: str) -> None:
        if word not in _SHOWN:
            raise UsageError("Say which: %gpu tracebacks full, or %gpu tracebacks short")
        self.tracebacks.is_full = word == "full"

    def _timeit(self, line: str, cell: str | None) -> Timing | None:
        """Time a line, or a cell of which ``line`` is the setup, as IPython's own magic of that name."""
        options, code = self.parse_options(line, "n:r:qo", posix=False, strict=False, preserve_non_opts=True)
        assert self.shell is not None  # whoever registers magics has one
        as_python: Callable[[str], str] = self.shell.transform_cell
        statement, setup = (code, "pass") if cell is None else (cell, code or "pass")
        if not statement.strip():
            raise UsageError("Say what to time: %gpu timeit x @ y")
        try:
            loops, repeat = int(options.get("n", 0)), int(options.get("r", 7))
        except ValueError:
            raise UsageError("-n and -r take whole numbers: %gpu timeit -n 10 -r 3 x @ y") from None
        if loops < 0 or repeat < 1:
            raise UsageError("-r takes a number from 1 on, and -n one from 0 on, which leaves the choice to us.")
        timing = measure(as_python(statement), as_python(setup), self.shell.user_ns, loops, repeat)
        if "q" not in options:
            sys.stdout.write(f"{timing}\n")
        return timing if "o" in options else None

    @context_matcher(identifier="workbench.gpu")
    def complete(self, context: CompletionContext) -> SimpleMatcherResult:
        """Complete sub-commands and options behind ``%gpu``; says nothing elsewhere."""
        words = context.text_until_cursor.lstrip().split(" ")
        if words[0] not in ("%gpu", "%%gpu", "gpu") or len(words) < 2:
            return {"completions": []}
        offered = tuple(_OPTIONS) if len(words) == 2 else _OPTIONS.get(words[1], ())
        found = [SimpleCompletion(word, type="param") for word in offered if word.startswith(words[-1])]
        return {"completions": found, "suppress": bool(found), "ordered": True}


def _connect(wanted: Namespace) -> None:
    """Open a session, with the pool that was named if one was.

    Raises
    ------
    UsageError
        If the pool cannot be had, or arrays would be lost without the user's word.
    """
    try:
        if wanted.word or wanted.server_key or wanted.key_file:
            _refuse_to_drop(wanted.drop_arrays)
            key_file: Path | None = Path(wanted.key_file).expanduser() if wanted.key_file else None
            connecting.connect(wanted.word, wanted.server_key.strip("'\""), key_file)
            current().first.close(release=True)  # now that the other pool has answered
        _ = current().first.session  # opened here
    except PoolError as error:
        raise UsageError(str(error)) from None


def _take_devices(wanted: Namespace) -> None:
    """Take a session with so many devices, unless this notebook has one.

    Raises
    ------
    UsageError
        If so many cannot be had, or arrays would be lost without the user's word.
    """
    count = _count(wanted.word)
    client = current().first
    before = client.wishes.devices
    try:
        session = client.held()
        if session is not None and client.devices == count:
            return
        if session is not None:
            _refuse_to_drop(wanted.drop_arrays or not any(_has_computed(one) for one in client.members or (client,)))
            _refuse_more_than_there_are(count)
            client.close(release=True)
        client.wishes.devices = count
        client.streams.set_device(0)
        _ = client.session  # opened here
    except BaseException as error:  # whatever kept so many from us, the next session must not ask for them again
        client.wishes.devices = before
        if isinstance(error, PoolError):
            raise UsageError(str(error)) from None
        raise


def _has_computed(client: Client) -> bool:
    return client.opened is not None and bool(client.opened.counters.ops)


def _count(word: str) -> int:
    try:
        return settings.DEVICES.checked(int(word) if word.isdecimal() else 0)
    except ValueError:  # also of thousands of digits, of which Python makes no number
        raise UsageError(f"Say how many, {settings.DEVICES}: %gpu devices 2") from None


def _ways() -> WaysFacts:
    """Show how operations were carried out so far.

    Raises
    ------
    UsageError
        If there is no session, or it cannot be asked.
    """
    session = current().held()
    if session is None:
        raise UsageError("Nothing was computed yet. Run something, then ask again: %gpu ways")
    try:
        return WaysFacts(session.ways())
    except PoolError as error:
        raise UsageError(str(error)) from None


def _class(wanted: Namespace) -> SharingFacts:
    """Show how this notebook shares its device, changed first if something is given.

    Raises
    ------
    UsageError
        If class or priority are none, or the pool says no; nothing has changed then.
    """
    _refuse_no_class(wanted)
    try:
        client = current().first
        wish = client.wishes.wished(settings.load()).wish
        given = {
            name: value for name in ("request", "limit", "priority") if (value := getattr(wanted, name)) is not None
        }
        if wanted.word:
            given["kind"] = wanted.word
        if given:
            wish = msgspec.structs.replace(wish, **given)
            for one in client.members or (client,):
                if (session := one.held()) is not None:
                    session.set_wish(wish)
            client.wishes.said = wish  # it counts for a session that is opened later too
    except PoolError as error:
        raise UsageError(str(error)) from None
    if wish.anti_affinity == client.wishes.apart:  # which is ours, and by which its devices keep apart
        wish = msgspec.structs.replace(wish, anti_affinity="")
    return SharingFacts(wish, client.opened is not None)


def _refuse_no_class(wanted: Namespace) -> None:
    if wanted.word and wanted.word not in _CLASSES:
        raise UsageError(f"There is no class {quoted(wanted.word)}; there are {', '.join(_CLASSES)}.")
    try:
        PRIORITY.checked(wanted.priority or 0)
    except ValueError as error:
        raise UsageError(str(error)) from None


def _usage(wanted: Namespace) -> UsageFacts:
    """Show what this user has used.

    Raises
    ------
    UsageError
        If the pool cannot be asked, or the day is none.
    """
    try:
        since = since_day(wanted.since, datetime.now().astimezone().date())
        view = request(settings.load(), AskUsage(0, wanted.by, since))
        if not isinstance(view, UsageView):
            raise PoolRefusal("The pool did not answer with its usage. Is its version the same as ours?")
        return UsageFacts(view)
    except PoolError as error:
        raise UsageError(str(error)) from None


def _refuse_to_drop(drop_arrays: bool) -> None:
    session = current().first.opened
    if session is not None and not drop_arrays:
        raise UsageError(
            f"This notebook has the session {session.ticket.session} with its arrays. Add --drop-arrays to leave it."
        )


def _refuse_more_than_there_are(count: int) -> None:
    """Refuse what the pool never gives before anything is dropped for it."""
    view = pool_at(settings.load().gateway)
    most = max(view.most_devices, len(view.devices))  # together, or of a session each
    if 0 < most < count:
        raise UsageError(
            f"{count} devices were asked for, and this pool gives a notebook {most} at most. This notebook keeps the "
            "session that it has."
        )
