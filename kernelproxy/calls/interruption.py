"""What an interrupted cell leaves behind: the first interrupt lets what was asked for be done, the second drops it.

On a GPU of one's own an interrupt stops the program, and the device still carries out what was launched: counters and
arrays agree. So it is here, and soon over, as little may run ahead (`kernelproxy.stream.ahead`). Whoever does not want
to wait for that interrupts again; then something is missing, and these words say what.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from time import monotonic
from typing import NamedTuple

from gpu_backend.opstream import surface
from gpu_backend.wire import values as wire
from gpu_backend.wire.errors import WorkbenchError
from gpu_backend.wire.messages import Op
from kernelproxy.calls.array_core import ArrayCore, handle_of
from kernelproxy.calls.remote_object import RemoteObject
from kernelproxy.client import clients
from kernelproxy.mirror.effects import LOOKING
from kernelproxy.stream.pipeline import Pipeline

#: How long the executor may take to say what it has dropped, seconds. It looks up between two ops.
_HEAR_SECONDS = 1.0
_LOOK_SECONDS = 0.05
#: How deep, and among how many items of a container, arrays are looked for.
_DEPTH, _MOST_ITEMS = 3, 1_000
#: Names of IPython's own that hold results.
_NOT_THE_USERS = frozenset({"In", "Out", "exit", "quit", "get_ipython"})


def tell_interrupted(names: Mapping[str, object]) -> None:
    """Settle what an interrupted cell of this process has asked for, and say on standard error what came of it."""
    for session in [one.opened for one in clients() if one.opened is not None and one.hears_interrupts]:
        told = after_interrupt(session.pipeline, names)
        if not told:
            continue
        print(told, file=sys.stderr)  # noqa: T201  # a cell's output is where the user looks


def after_interrupt(pipeline: Pipeline, names: Mapping[str, object]) -> str:
    """Let what an interrupted cell has asked for be done, or drop it if that was said before; return what to tell.

    ``names`` are the user's. Nothing is told, "", where nothing is under way. Who interrupts this interrupts again.
    """
    try:
        try:
            return _let_be_done(pipeline, names)
        except KeyboardInterrupt:
            return drop(pipeline, names)
    except WorkbenchError as error:  # the executor is gone, and all that was asked of it
        pipeline.inbox.tell_later(error)
        return ""


def _let_be_done(pipeline: Pipeline, names: Mapping[str, object]) -> str:
    if pipeline.is_draining:
        return drop(pipeline, names)
    pipeline.drain()
    if not pipeline.is_draining:
        return ""
    seconds = pipeline.ahead.seconds
    about = f"about {seconds:.1f} s of work" if seconds >= 0.1 else "a moment's work"
    return f"Interrupted. What the cell has asked for is still done on the GPU ({about}); interrupt again to drop it."


def drop(pipeline: Pipeline, names: Mapping[str, object]) -> str:
    """Drop every op that has not begun; return what the user is told of their names."""
    pending = pipeline.cancel_pending()
    if not pending:
        return ""
    through, until = pending[-1][0], monotonic() + _HEAR_SECONDS
    while pipeline.inbox.dropped[1] < through and monotonic() < until:
        pipeline.read(_LOOK_SECONDS)
    after, heard_through = pipeline.inbox.dropped
    is_heard = heard_through >= through
    dropped = [op for number, op in pending if not is_heard or number > after]
    if not dropped:
        return "Interrupted again, but everything had been done: nothing is lost."
    return _in_words(len(dropped), is_heard, Loss.of(dropped, pipeline), names)


class Loss(NamedTuple):
    """Handles that ops of a pipeline would have made, from the first on, and those of older arrays that they would
    have changed.
    """

    pipeline: Pipeline
    first: int
    end: int
    changed: frozenset[int]

    @classmethod
    def of(cls, dropped: list[Op], pipeline: Pipeline) -> Loss:
        """Return what is lost with ``dropped``, the last ops that ``pipeline`` was asked for."""
        end = pipeline.next_handle
        first = min([op.out for op in dropped if op.out], default=end)
        changed = {handle for op in dropped for handle in _changed_by(op) if handle < first}
        return cls(pipeline, first, end, frozenset(changed))

    def never_made(self, handle: int) -> bool:
        """Tell whether ``handle`` holds nothing."""
        return self.first <= handle < self.end


def _changed_by(op: Op) -> Iterator[int]:
    """Yield the handles of what ``op`` changes in place; of a user's kernel, of all that it could."""
    given = (op.kwargs or {}).get("out")
    changed: list[wire.Value] = [given] if given is not None else []
    if not op.out and op.name in (".call", ".launch"):
        changed += op.args[1:]
    elif not op.out and op.args and op.name not in LOOKING:
        changed.append(op.args[-1] if isinstance(surface.load().get(op.name), surface.Ufunc) else op.args[0])
    for value in changed:
        yield from _named_in(value)


def _named_in(value: wire.Value) -> Iterator[int]:
    if isinstance(value, wire.Ref):
        yield value.handle
    elif isinstance(value, wire.View):
        yield value.root
    elif isinstance(value, wire.Tuple | wire.List):
        for item in value.items:
            yield from _named_in(item)


def _in_words(count: int, is_heard: bool, loss: Loss, names: Mapping[str, object]) -> str:
    missing, stale = [], []
    for name, value in list(names.items()):
        if name.startswith("_") or name in _NOT_THE_USERS:
            continue
        handles = set(_handles(loss.pipeline, value, _DEPTH))
        if any(map(loss.never_made, handles)):
            missing.append(name)
        elif not loss.changed.isdisjoint(handles):
            stale.append(name)
    were = "operation that had not begun is" if count == 1 else "operations that had not begun are"
    told = [f"Interrupted again: {count:,} {were} dropped."]
    if not is_heard:
        told = ["Interrupted again: what had not begun is dropped. The GPU is busy: some of it may be done after all."]
    if missing:
        told.append(f"Never computed: {', '.join(missing)}.")
    if stale:
        told.append(f"Not brought up to date: {', '.join(stale)}.")
    if missing or stale:
        told.append("Run the cells again that make them.")
    else:
        told.append("No name of yours is lost by it.")
    return " ".join(told)


def _handles(pipeline: Pipeline, value: object, depth: int) -> Iterator[int]:
    """Yield the handles of what ``pipeline`` has been asked to make in ``value``, and in containers up to ``depth``."""
    if isinstance(value, ArrayCore):
        if value._client.pipeline is pipeline:
            yield handle_of(value._ref)
    elif isinstance(value, RemoteObject):
        if value._client is not None and value._client.pipeline is pipeline:
            yield value._handle
    elif depth and isinstance(value, (list, tuple, dict, set)):
        items = list(value.values() if isinstance(value, dict) else value)
        for item in items[:_MOST_ITEMS]:
            yield from _handles(pipeline, item, depth - 1)
