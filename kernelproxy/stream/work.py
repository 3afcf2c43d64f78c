"""What the device has to do for this notebook, as far as is known here: nothing in it waits for the device."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from time import monotonic
from typing import Any, NamedTuple

from gpu_backend.wire.messages import Op, Want
from gpu_backend.wire.values import Ref
from kernelproxy.session.signs import Sign, Transfer
from kernelproxy.source_lines import Site
from kernelproxy.stream.recorder import Recorder

#: An executor that spoke within this time is not in the middle of an op: it is asked every second, seconds.
_FRESH_SECONDS = 1.5
#: So many of the waiting ops are looked at.
_MOST_LOOKED_AT = 100
#: What is done in no time, once what it reads or waits for is there; what is short beside others; and what is long.
_BRIEF = frozenset(
    ".nothing .keep .same .window .wait_event .synchronize .memory .ways cupy.cuda.Event cupy.empty".split(),
)
_SHORT = frozenset(
    "cupy.zeros cupy.ones cupy.full cupy.arange .write .write_kept .store .getattr .setattr".split(),
)
_LONG = (
    ".call",
    ".launch",
    ".compile",
    ".python_kernel",
    ".begin",
    "cupy.linalg.",
    "cupy.fft.",
    "cupy.matmul",
    "cupyx.",
)
#: Verbs that are nothing but a transfer.
_READS, _WRITES = ".same", (".write", ".write_kept", ".keep")
_WORDS = {
    ".synchronize": "Synchronizing",
    ".nothing": "Synchronizing",
    ".memory": "Asking for the memory in use",
    ".ways": "Asking how operations were carried out",
    ".window": "Making a view",
    ".store": "Assigning to a part of an array",
    ".store_where": "Assigning by a mask",
    ".wait_event": "Waiting for an event",
    ".channel": "Waiting for a way to another device",
    ".send": "Copying to another device",
    ".receive": "Copying from another device",
    ".resume": "Calling a function of the notebook",
    ".module_of_file": "Loading a compiled module",
    ".doc": "Reading a docstring",
}


Kernels = Mapping[int, Any]


class Work(NamedTuple):
    """Work under way. ``queued`` operations are not known to be done; ``unsent`` of them wait here.

    ``what`` is the oldest of them, or the newest of those that the device was told to carry out and still computes;
    ``place`` the line that recorded it, and ``seconds`` for how long nothing else was heard. "" and 0 if there is none.
    ``is_heard`` tells whether the executor has just said that it is so.
    """

    what: str = ""
    place: str = ""
    seconds: float = 0.0
    queued: int = 0
    unsent: int = 0
    is_heard: bool = False


def note_kernel(recorder: Recorder, kernel: Any, name: str) -> None:
    """Remember what ``kernel``, a remote object, is called."""
    object.__setattr__(kernel, "_called", name)
    recorder.kernels[kernel._handle] = kernel


def under_way(recorder: Recorder) -> Work:
    """Return the work of ``recorder`` that is not known to be done."""
    journal, batch = recorder.journal, recorder.open_batch
    queued = max(0, batch.end - 1 - journal.marks.applied)
    found = _running(recorder)
    if found is None:
        return Work(queued=len(batch.ops), unsent=len(batch.ops))
    op, site, is_certain = found
    what = in_words(op, recorder.kernels)
    if not is_certain:
        what = f"{what}, or another of what is queued,"
    unsent = batch.end - 1 - journal.cursor
    return Work(what, _place(site), monotonic() - recorder.inbox.moved_at, queued, unsent)


def _running(recorder: Recorder) -> tuple[Op, Site | None, bool] | None:
    """Return what the device is at, where that was recorded, and whether that is certain.

    An executor in the middle of an op says nothing, and what it last said may be a few short ops old: those that ran
    within 20 ms. So it is certain where it has just said that it is no further, or where all are alike; else the oldest
    of the ops that take longest, as far as their names tell, is taken for it. What is done in no time waits for what
    the device was given before.
    """
    journal, inbox = recorder.journal, recorder.inbox
    waiting = [batch.at(place) for batch, place in islice(journal.waiting(), _MOST_LOOKED_AT)]
    if all(_weight(op) < 0 for op, _ in waiting):
        given = [batch.at(place) for batch, place in islice(journal.computing(), _MOST_LOOKED_AT)]
        found = max(given, key=lambda one: _weight(one[0]), default=None)
        if waiting and (found is None or _weight(found[0]) <= 0):
            found = waiting[0]
        return (*found, True) if found is not None else None
    # What it said before the oldest of them was sent, or before it was seen to go on, tells nothing of these.
    if inbox.heard_at > inbox.moved_at and monotonic() - inbox.heard_at < _FRESH_SECONDS:
        return (*waiting[0], True)
    likely, site = max(waiting, key=lambda one: _weight(one[0]))
    what = in_words(likely, recorder.kernels)
    return likely, site, all(_weight(op) < 0 or in_words(op, recorder.kernels) == what for op, _ in waiting)


def _weight(op: Op) -> int:
    """Return how long ``op`` takes beside others: more for more, negative for what is done in no time."""
    if op.name in _BRIEF or (op.name == ".method" and op.args[1] == "record"):
        return -1
    if op.name.startswith(_LONG):
        return 2
    return 0 if op.name in _SHORT else 1


def sign(recorder: Recorder, transfer: Transfer | None = None) -> Sign:
    """Return what somebody waits for who waits for the answer to the last op, or for room to send more.

    ``transfer`` is the one that this is part of, if there is one.
    """
    found = _running(recorder)
    if found is None:
        return transfer.sign() if transfer is not None else Sign("Waiting for the executor")
    op, site, is_certain = found
    if op.name in (_READS, *_WRITES) and transfer is not None:
        return transfer.sign()._replace(place=_place(site))
    behind = recorder.open_batch.end - recorder.journal.marks.applied - 2
    what = in_words(op, recorder.kernels)
    return Sign(what, _others(behind, is_certain), _place(site), is_op=what == op.name)


def _others(behind: int, is_certain: bool) -> str:
    """Return what is queued beside the operation that is named: ``behind`` it, or each as likely to run."""
    if behind <= 0:
        return ""
    if is_certain:
        return f"{behind:,} operation{'s' * (behind > 1)} behind it"
    return f"or one of {behind:,} other operations" if behind > 1 else "or the other operation"


def _place(site: Site | None) -> str:
    return site.describe() if site is not None else ""


def in_words(op: Op, kernels: Kernels) -> str:
    """Return what people call ``op``; ``kernels`` are the user's own by their handle."""
    if not op.name.startswith("."):
        return op.name
    if op.name in (".call", ".launch", ".compile"):
        if op.name == ".compile":
            return f"Compiling {_kernel(op, kernels)}"
        is_first = op.want is not Want.NOTHING  # only a first launch is waited for
        return f"{'Compiling and running' if is_first else 'The kernel'} {_kernel(op, kernels)}"
    if op.name in (_READS, *_WRITES):
        return "Download" if op.name == _READS else "Upload"
    if op.name == ".begin":
        return str(op.args[0])
    if op.name in (".method", ".getattr", ".setattr"):
        return f"{'The method' if op.name == '.method' else 'The attribute'} {op.args[1]}"
    if op.name == ".python_kernel":
        return f"Compiling {op.args[1]}"
    return _WORDS.get(op.name, op.name)


def _kernel(op: Op, kernels: Kernels) -> str:
    target = op.args[0]
    kernel = kernels.get(target.handle) if isinstance(target, Ref) else None
    return kernel._called if kernel is not None else "a kernel"
