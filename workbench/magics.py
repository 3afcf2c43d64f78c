"""The magic ``%gpu``: one word, with sub-commands."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from IPython.core.completer import CompletionContext, SimpleCompletion, context_matcher
from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring

from gpu_backend.wire.errors import PoolError
from kernelproxy.session import adopt_session, current_session, opened_session
from workbench import connecting
from workbench.display import Json
from workbench.status import GpuStatus

if TYPE_CHECKING:
    from argparse import Namespace

    from IPython.core.completer import SimpleMatcherResult

_OPTIONS = {
    "status": ("--json",),
    "connect": ("--server-key", "--key-file", "--drop-arrays", "--json"),
}


@magics_class
class GpuMagics(Magics):
    """``%gpu status`` and ``%gpu connect``. Each returns an object, so ``state = %gpu status`` works."""

    @magic_arguments()
    @argument("command", nargs="?", default="status", choices=tuple(_OPTIONS), help="What to do; status by default.")
    @argument("address", nargs="?", default="", help="connect: the gateway's address, tcp://host:port.")
    @argument("--server-key", default="", help="connect: the pool's public key, 40 characters.")
    @argument("--key-file", default="", help="connect: the file with your own key pair.")
    @argument("--drop-arrays", action="store_true", help="connect: leave the present pool; its arrays are lost.")
    @argument("--json", action="store_true", help="Return the same as JSON.")
    @line_magic
    def gpu(self, line: str) -> GpuStatus | Json:
        """Show or change where this notebook computes.

        ``%gpu status`` shows device, memory, session, what it cost so far, and the pool. ``%gpu connect`` takes a
        session now rather than at the first array; with an address it connects to another pool first.
        """
        wanted = parse_argstring(self.gpu, line)
        if wanted.command == "connect":
            _connect(wanted)
        elif wanted.address:
            raise UsageError(f"%gpu status takes no {wanted.address!r}. Did you mean: %gpu connect {wanted.address}")
        status = GpuStatus.now()
        return Json(status.to_dict()) if wanted.json else status

    @context_matcher(identifier="workbench.gpu")
    def complete(self, context: CompletionContext) -> SimpleMatcherResult:
        """Complete sub-commands and options behind ``%gpu``; says nothing elsewhere."""
        words = context.text_until_cursor.lstrip().split(" ")
        if words[0] not in ("%gpu", "gpu") or len(words) < 2:
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
        if wanted.address or wanted.server_key or wanted.key_file:
            _leave(wanted.drop_arrays)
            key_file: Path | None = Path(wanted.key_file).expanduser() if wanted.key_file else None
            connecting.connect(wanted.address, wanted.server_key, key_file)
        current_session()
    except PoolError as error:
        raise UsageError(str(error)) from None


def _leave(drop_arrays: bool) -> None:
    session: Any = opened_session()
    if session is None:
        return
    if not drop_arrays:
        raise UsageError(
            f"This notebook has the session {session.ticket.session} with its arrays. Add --drop-arrays to leave it."
        )
    adopt_session(None)
    session.close(release=True)
