"""The kernel "Remote GPU (CuPy)": IPython's own, with our extension loaded and an interrupt that always arrives.

Wherever in IPython's own work around a cell it strikes, nothing but the cell ends by it.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread
from time import sleep
from types import FrameType
from typing import Any

from ipykernel.ipkernel import IPythonKernel
from ipykernel.parentpoller import ParentPollerUnix
from ipykernel.zmqshell import ZMQInteractiveShell
from IPython.core.interactiveshell import ExecutionInfo, ExecutionResult
from traitlets import Type

from kernelproxy.calls.interruption import tell_interrupted
from kernelproxy.client import clients, current

#: How often to look whether the starter is still there, seconds.
_LOOK_SECONDS = 1.0

_BANNER = (
    "Remote GPU (CuPy): `import cupy` computes in the pool, its arrays live there.\n"
    "`%gpu status` shows device, memory and pool.\n"
)


class RemoteGpuShell(ZMQInteractiveShell):
    """IPython's shell of a kernel, in which no interrupt leaves the task of a cell with ``await``."""

    async def run_cell_async(self, raw_cell: str, *where: bool, **options: Any) -> ExecutionResult:
        """Run a cell, as IPython does; an interrupt of IPython's own work around it is an interrupt of the cell.

        IPython sees to that where it runs the cell itself. Where the kernel awaits the cell, KeyboardInterrupt would
        end the event loop, and the kernel with all that the notebook holds.
        """
        try:
            return await super().run_cell_async(raw_cell, *where, **options)
        except KeyboardInterrupt as error:
            told = {name: options.get(name, False) for name in ("store_history", "silent")}
            result = ExecutionResult(
                ExecutionInfo(raw_cell, **told, shell_futures=True, cell_id=options.get("cell_id"))
            )
            result.error_in_exec = error
            self.showtraceback(running_compiled_code=True)
            return result


class RemoteGpuKernel(IPythonKernel):
    """An ordinary IPython kernel whose ``import cupy`` is remote.

    Named by ``kernel_class`` in the kernelspec's command line. Everything that can live in the IPython extension
    does, so that it works in any other Python kernel too.
    """

    shell_class = Type(RemoteGpuShell)

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)  # type: ignore[no-untyped-call]
        current().keep_ticket()
        assert self.shell is not None  # made by IPythonKernel.__init__
        self.shell.extension_manager.load_extension("workbench")
        app: Any = self.parent
        if isinstance(getattr(app, "poller", None), ParentPollerUnix):
            app.poller = _StarterWatch()  # the app starts it

    @property
    def banner(self) -> str:  # type: ignore[override]  # a property there too, but not annotated as one
        """What a console shows at its start."""
        return _BANNER + str(super().banner)

    @contextmanager
    def _cancel_on_sigint(self, future: asyncio.Future[Any]) -> Iterator[None]:
        """Let an interrupt reach a cell with ``await`` at once.

        ipykernel 7.4 asks its event loop to cancel the cell without waking the loop, so an awaiting cell goes on for
        as long as nothing else happens. While the cell itself computes, KeyboardInterrupt does what it does elsewhere.
        """
        loop = asyncio.get_running_loop()

        def interrupt(number: int, frame: FrameType | None) -> None:
            if asyncio.current_task(loop) is future:
                signal.default_int_handler(number, frame)
            loop.call_soon_threadsafe(future.cancel)

        previous = signal.signal(signal.SIGINT, interrupt)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, previous)

    def post_handler_hook(self) -> None:
        """Hear interrupts between two cells too: what an interrupted one has left to be done is dropped then.

        Called by ipykernel after every request, in the main thread. By itself it ignores them.
        """
        self._loop = asyncio.get_running_loop()
        signal.signal(signal.SIGINT, self._interrupted_between_cells)

    def _interrupted_between_cells(self, number: int, frame: FrameType | None) -> None:
        # Not here: the event loop's own code may be anywhere. And so that it wakes, which tornado's own way does not.
        self._loop.call_soon_threadsafe(self._drop_what_drains)

    def _drop_what_drains(self) -> None:
        drains = [one.opened is not None and one.opened.pipeline.is_draining for one in clients()]
        if any(drains) and self.shell is not None:
            tell_interrupted(self.shell.user_ns)

    async def do_shutdown(self, restart: bool) -> dict[str, Any]:
        """Leave the pool. A lease that the provisioner took outlives a restart; one of our own does not."""
        for one in clients():
            if one.opened is not None:
                one.close(release=one.opened.is_ours or not restart)
        return dict(super().do_shutdown(restart))  # type: ignore[no-untyped-call]


class _StarterWatch(Thread):
    """Ends the kernel when its starter has ended, as ipykernel's own poller does, and its session with it.

    Whoever could start another kernel for the session is gone then: it would hold its place until its lease runs out.
    """

    def __init__(self) -> None:
        super().__init__(name="gpu-workbench-starter", daemon=True)

    def run(self) -> None:
        starter = os.getppid()
        while starter != 1 and os.getppid() == starter:
            sleep(_LOOK_SECONDS)
        try:
            _give_back_all()
        finally:
            os._exit(1)


def _give_back_all() -> None:
    for one in clients():
        one.give_back()
