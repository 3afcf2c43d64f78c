"""The provisioner of the kernel "Remote GPU (CuPy)": takes the lease before the kernel starts, gives it back after.

As the server calls it: start = ``pre_launch``, ``launch_kernel``; restart = ``cleanup(restart=True)``, ``pre_launch``
again on the same object; shutdown = ``cleanup(restart=False)``, perhaps twice. A crash calls ``kill(restart=False)``
although a restart follows, so the lease is given back in ``cleanup``, or some seconds after a death that no restart
follows: the server gives up after five crashes, and calls nothing then. Where the server itself was killed, the
kernel gives the lease back as it ends; where both were at once, it runs out by itself.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from textwrap import wrap
from time import strftime
from typing import Any

import msgspec
from jupyter_client.provisioning.local_provisioner import LocalProvisioner
from jupyter_core.paths import jupyter_runtime_dir
from tornado.web import HTTPError
from traitlets import Float

from gpu_backend.wire.control import CloseSession, OpenSession, Queued, RenewTicket, RestartSession, Ticket
from gpu_backend.wire.errors import (
    AnswerOverdue,
    ExecutorStarting,
    ForeignServer,
    NoDevice,
    NotAuthorized,
    PoolError,
    PoolFull,
    PoolRefusal,
    PoolUnreachable,
    SessionLost,
)
from kernelproxy import settings
from kernelproxy.session import handover
from kernelproxy.session.gateway_client import request_async
from kernelproxy.session.handover import TICKET_VARIABLE, Handed
from kernelproxy.session.wishes import Wishes
from workbench.environment import PREVIOUS_END_VARIABLE
from workbench.keeping import refused_by_system

_DIALOG_COLUMNS = 90

_REASONS: dict[type[Exception], str] = {
    PoolRefusal: "The GPU pool gave no session",
    PoolUnreachable: "The GPU pool cannot be reached",
    ForeignServer: "What answers is not the GPU pool",
    NotAuthorized: "The GPU pool does not know this key",
    OSError: "The kernel cannot be started on this machine",
}


class RemoteGpuProvisioner(LocalProvisioner):
    """Starts the kernel on this machine, with a session in the pool."""

    lease_timeout = Float(
        2.0, help="How long the pool may take to grant or refuse a session, seconds; the dialog waits for it."
    ).tag(config=True)

    crash_patience = Float(
        20.0, help="How long the session of a kernel that died is kept for the next one, seconds."
    ).tag(config=True)

    #: What the pool granted; kept over restarts.
    ticket: Ticket | None = None
    _previous_end = ""
    _end_is_wanted = False
    #: Whether what is launched next is a restart.
    _has_begun = False
    #: Gives the lease of a kernel back that died and is not started again.
    _giving_back: asyncio.Task[None] | None = None

    async def pre_launch(self, **kwargs: Any) -> dict[str, Any]:
        """Take a session, or move the one we have to its next epoch; then prepare the launch.

        Raises
        ------
        tornado.web.HTTPError
            503 with the pool's own words if it refuses, cannot be reached or does not know us; with the system's if
            what the kernel needs cannot be written. Of a restart only the latter: the former its first cell says.
        """
        self._forget_start()
        self._keep_lease()
        label = kwargs.get("env", os.environ).get("JPY_SESSION_NAME", "")
        try:
            handed = await (self._lease_again(label) if self._has_begun else self._lease(label))
        except PoolError as error:
            raise _as_dialog(error) from None
        try:
            kwargs = await super().pre_launch(**kwargs)
            self._hand_over(handed, kwargs["env"])
        except BaseException as error:  # whatever stopped the launch, nobody would give the lease back later
            await self._release()
            if isinstance(error, OSError):
                raise _as_dialog(error) from None
            raise
        self._has_begun = True
        kwargs["env"].pop(PREVIOUS_END_VARIABLE, None)
        if self._previous_end:
            kwargs["env"][PREVIOUS_END_VARIABLE] = self._previous_end
            self._previous_end = ""
        return kwargs

    async def poll(self) -> int | None:
        """Return None while the kernel runs, else its exit status; a death is noted for the kernel after it."""
        status = await super().poll()
        if self.process is not None and status:
            self._note_end(status)
        return status

    async def shutdown_requested(self, restart: bool = False) -> None:
        """Note that the end to come is wanted. Called before the kernel is asked to leave."""
        self._end_is_wanted = True
        await super().shutdown_requested(restart)

    async def kill(self, restart: bool = False) -> None:
        """Kill the process. Of one that still runs, the end is wanted; a dead one's was noted by `poll`."""
        self._end_is_wanted = True
        await super().kill(restart)

    async def terminate(self, restart: bool = False) -> None:
        """End the process; its end is wanted."""
        self._end_is_wanted = True
        await super().terminate(restart)

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> Any:
        """Start the process; if that fails the lease is given back."""
        self._end_is_wanted = False
        try:
            return await super().launch_kernel(cmd, **kwargs)
        except BaseException:  # as above: a kernel that never ran has no cleanup
            await self._release()
            raise

    async def cleanup(self, restart: bool = False) -> None:
        """Give the lease back, unless the kernel starts again."""
        await super().cleanup(restart)
        if not restart:
            self._has_begun = False
            await self._release()

    async def get_provisioner_info(self) -> dict[str, Any]:
        """Return what another server needs to take this kernel over, its lease included.

        Servers keep that where they like, so neither the ticket's secret nor the tickets beside it are in it: only the
        kernel uses those.
        """
        info = await super().get_provisioner_info()
        ticket = self.ticket and msgspec.structs.replace(self.ticket, secret="", beside=())
        return {**info, "ticket": msgspec.to_builtins(ticket)}

    async def load_provisioner_info(self, provisioner_info: dict[str, Any]) -> None:
        """Take over a kernel and its lease."""
        await super().load_provisioner_info(provisioner_info)
        self._has_begun = True
        ticket = provisioner_info.get("ticket")
        self.ticket = None if ticket is None else msgspec.convert(ticket, Ticket)

    @property
    def ticket_file(self) -> Path:
        """Where the kernel finds its ticket."""
        return Path(jupyter_runtime_dir()) / f"gpu-workbench-{self.kernel_id}.json"

    def _forget_start(self) -> None:
        """Have the server forget that this kernel is being started.

        A Jupyter server that is told to end looks for a kernel for each start that jupyter_client 8.10 has under way,
        finds none, and goes on running. A start is under way while the pool is asked, and, once it has failed, for
        ever. With ``use_pending_kernels`` the kernel is known from the first, and the server removes it itself.
        """
        kernels = getattr(self.parent, "parent", None)  # the manager of all kernels, where there is one
        if not getattr(kernels, "use_pending_kernels", False):
            getattr(kernels, "_pending_kernels", {}).pop(self.kernel_id, None)

    # --- the lease ----------------------------------------------------------------------------------------------------

    async def _lease(self, label: str) -> Handed:
        """Return what the kernel gets: a ticket, or what to ask for one. Keeps the ticket.

        Neither an executor that is still starting nor a place in a full pool is waited for, nor a pool that is busy:
        the server's dialog shows nothing meanwhile, and cannot be interrupted. The kernel waits, in the cell that needs
        it.
        """
        self.ticket = self._taken() or self.ticket
        if self.ticket is not None:
            session = self.ticket.session
            try:
                answer = await self._ask(RestartSession(0, session, may_wait=True))
            except ExecutorStarting:
                return RenewTicket(0, session, may_wait=True)
            except SessionLost as lost:  # the pool was started anew, or this machine slept through the lease
                self.log.warning("The session %s has ended: %s Taking a new one.", session, lost)
                self.ticket = None
            else:
                if isinstance(answer, Queued):
                    return RenewTicket(0, session, may_wait=True)
                self.ticket = answer
                return answer
        return await self._new_lease(label)

    async def _lease_again(self, label: str) -> Handed | None:
        """Do as `_lease` does, and leave it to the kernel to ask again, and to be refused, where the pool says no.

        Nobody would read it otherwise: of a restart that fails the server keeps the reason to itself, and JupyterLab
        says "Restarting" for ever.
        """
        try:
            return await self._lease(label)
        except PoolError as refused:
            self.log.warning("The kernel will ask for its session when it needs one: %s", refused)
        if self.ticket is not None:
            return RenewTicket(0, self.ticket.session, may_wait=True)
        try:
            return _wanted(label)
        except PoolError:  # what the user has set is not right, as the kernel will say that reads it too
            return None

    async def _new_lease(self, label: str) -> Handed:
        wanted = _wanted(label)
        try:
            answer = await self._ask(wanted)
        except (ExecutorStarting, PoolFull, AnswerOverdue) as not_yet:  # the last: the pool was asked, and is busy
            self.log.info("The kernel will take its session when it needs one: %s", not_yet)
            return wanted
        except NoDevice as not_together:
            if wanted.wish.devices == 1:
                raise
            self.log.info("The kernel will take a session for each of its devices: %s", not_together)
            return wanted
        if not isinstance(answer, Ticket):
            raise PoolRefusal("The pool lets us wait although we did not ask to.")
        self.ticket = answer
        return answer

    def _taken(self) -> Ticket | None:
        """Return the ticket of the session that the kernel has: the one it was handed, or one it took by itself."""
        try:
            handed = handover.read(self.ticket_file)
        except (OSError, msgspec.DecodeError):  # none was needed, or the kernel died as it wrote
            return None
        return handed if isinstance(handed, Ticket) else None

    async def _ask(self, message: OpenSession | RestartSession) -> Ticket | Queued:
        answer = await request_async(settings.load(), message, self.lease_timeout)
        if not isinstance(answer, Ticket | Queued):
            raise PoolRefusal("The pool did not answer with a session. Is its version the same as ours?")
        return answer

    async def _release(self) -> None:
        self._keep_lease()
        ticket, self.ticket = self._taken() or self.ticket, None
        with suppress(OSError):  # none was written, perhaps as nothing can be
            self.ticket_file.unlink()
        if ticket is None:
            return
        try:
            await request_async(settings.load(), CloseSession(0, ticket.session), self.lease_timeout)
        except SessionLost:
            return
        except PoolError as error:
            self.log.warning("The session %s could not be given back and will run out: %s", ticket.session, error)

    def _hand_over(self, handed: Handed | None, env: dict[str, str]) -> None:
        if handed is None:
            return
        handover.write(handed, self.ticket_file)
        env[TICKET_VARIABLE] = str(self.ticket_file)

    def _note_end(self, status: int) -> None:
        if self._end_is_wanted or self._previous_end:
            return
        self._previous_end = (
            f"The kernel before this one {_in_words(status)} at {strftime('%H:%M:%S')}; its variables and remote "
            "arrays are gone. Run your cells again from the top."
        )
        self.log.warning("%s", self._previous_end)
        # A restart comes within seconds. After some crashes the server gives up, and says so to nobody.
        self._giving_back = asyncio.create_task(self._give_back_late())

    async def _give_back_late(self) -> None:
        await asyncio.sleep(self.crash_patience)
        self._giving_back = None
        await self._release()

    def _keep_lease(self) -> None:
        if self._giving_back is not None:
            self._giving_back.cancel()
            self._giving_back = None


def _wanted(label: str) -> OpenSession:
    wish, memory_bytes = Wishes().wished(settings.load())
    return OpenSession(0, label, "", memory_bytes, wish)


def _in_words(status: int) -> str:
    if status > 0:
        return f"ended with status {status}"
    name = signal.Signals(-status).name
    if -status == signal.SIGKILL and sys.platform == "linux":
        return f"was killed ({name}), often because this machine's memory ran out,"
    return f"was ended by {name}"


def _as_dialog(error: PoolError | OSError) -> HTTPError:
    """Return ``error`` in the one form whose text the server shows to the user.

    JupyterLab shows it unwrapped, in parentheses behind the reason, so lines are broken here.
    """
    reason = next((text for kind, text in _REASONS.items() if isinstance(error, kind)), "The GPU pool failed")
    # tornado doubles a percent sign in the message, and the dialog shows both.
    text = (refused_by_system(error) if isinstance(error, OSError) else str(error)).replace("%", " percent")
    lines = [line for part in text.splitlines() for line in wrap(part, _DIALOG_COLUMNS, break_on_hyphens=False)]
    return HTTPError(503, "\n".join(["", *lines]), reason=reason)
