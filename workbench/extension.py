"""The IPython extension: what makes any Python kernel a notebook of the pool, and how it is undone."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import TYPE_CHECKING, Any

from IPython.core.getipython import get_ipython

import kernelproxy
from kernelproxy.calls.interruption import tell_interrupted
from kernelproxy.client import clients
from kernelproxy.session.notice import Notices
from workbench import catalog_magics
from workbench.environment import PREVIOUS_END_VARIABLE
from workbench.magics import GpuMagics
from workbench.notice import CellNotice

if TYPE_CHECKING:
    from IPython.core.interactiveshell import ExecutionResult, InteractiveShell


def load(shell: InteractiveShell) -> None:
    """Make ``import cupy`` remote, add ``%gpu`` and ``%catalog``, and tell why a previous kernel ended."""
    kernelproxy.activate()
    if hasattr(shell, "kernel"):  # else it is a terminal, where a line that is shown cannot be replaced later
        _show_waits(Notices(CellNotice, CellNotice))
    magics = GpuMagics(shell)
    magics.tracebacks.load()
    shell.register_magics(magics)
    shell.Completer.custom_matchers.append(magics.complete)
    for event, callback in _ALWAYS:
        shell.events.register(event, callback)
    if PREVIOUS_END_VARIABLE in os.environ:
        shell.events.register("pre_run_cell", _tell_previous_end)
    catalog_magics.load(shell)


def unload(shell: InteractiveShell) -> None:
    """Undo `load`. Arrays that the notebook holds go on working."""
    for magics in [one for one in shell.configurables if isinstance(one, GpuMagics)]:
        magics.tracebacks.unload()
        shell.configurables.remove(magics)
        shell.Completer.custom_matchers.remove(magics.complete)
        for kind in ("line", "cell"):
            shell.magics_manager.magics[kind].pop("gpu", None)
        shell.magics_manager.registry.pop(GpuMagics.__name__, None)
    for event, callback in _EVENTS:
        if callback in shell.events.callbacks[event]:
            shell.events.unregister(event, callback)
    catalog_magics.unload(shell)
    _show_waits(Notices())
    kernelproxy.deactivate()


def settle_interrupted(result: ExecutionResult) -> None:
    """Let what an interrupted cell asked for be done, or drop it the second time. Called by IPython after every cell.

    A cell that handles its interrupt itself goes on with arrays as they would be on a GPU of one's own.
    """
    # One that strikes between two statements of the cell is "before" its execution: IPython compiles each by itself.
    errors = result.error_in_exec, result.error_before_exec
    if any(isinstance(one, KeyboardInterrupt | asyncio.CancelledError) for one in errors):
        shell = get_ipython()
        tell_interrupted(shell.user_ns if shell is not None else {})


def _show_waits(notices: Notices) -> None:
    """Have all clients show what they wait for by ``notices``; those that are made later ask the current one."""
    for one in clients():
        one.signs.notices = notices


def _begin_cell(info: Any) -> None:
    """Let what is told from now on stand below this cell."""
    for one in clients():
        one.signs.begin_cell()


def _settle(result: ExecutionResult) -> None:
    """Let what was told of a wait that failed say so."""
    for one in clients():
        one.signs.settle(result.error_in_exec or result.error_before_exec)


def _tell_previous_end(info: Any) -> None:
    """Say once, at the first cell, why the kernel before this one ended."""
    reason = os.environ.pop(PREVIOUS_END_VARIABLE, "")
    if reason:
        print(reason, file=sys.stderr)  # noqa: T201  # a cell's output is where the user looks


_ALWAYS = (
    ("pre_run_cell", _begin_cell),
    ("post_run_cell", settle_interrupted),
    ("post_run_cell", _settle),
)
_EVENTS = (*_ALWAYS, ("pre_run_cell", _tell_previous_end))
