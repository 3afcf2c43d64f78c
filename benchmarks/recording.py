"""What a call costs the client, in microseconds, by several trees of this project in turns in one run.

Run as ``python benchmarks/recording.py TREE [TREE ...]`` with the folders of checkouts, the one to compare with first.
Each has a process of its own, whose executor is played and runs nothing; the shortest of all turns is printed. What
waits for an answer has it at once: it is the client's part of the trip. What masks choose stands beside what is as long
as everybody knows. Then comes what the client computes by itself, as it knows the values. Last are copies of 4 KiB,
128 KiB and 1 MiB, by rings and blocks as on one host, with the transport's part of the other side.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from time import perf_counter
from types import SimpleNamespace
from typing import Any

TURNS = 40  #: of each tree
CALLS = 2_000  #: of a turn, of each kind

_KINDS = (
    "x + y", "x + 2.0", "cp.sin(x)", "cp.maximum(x, y)", "cp.add(x, y, z)", "cp.add(x, y, out=z)", "x.sum()",
    "cp.sum(x)", "cp.sum(m, axis=0)", "m.sum(axis=1, keepdims=True)", "cp.where(b, x, y)", "cp.where(b, x, 0.0)",
    "cp.clip(x, 0, 1)", "cp.zeros(9)", "cp.zeros((3, 4), dtype=cp.float32)", "cp.full(9, 0.5)", "cp.arange(9)",
    "cp.dot(m, m)", "m @ m", "cp.zeros_like(x)", "x.copy()", "x.astype(cp.float32)", "cp.concatenate([x, y])",
    "cp.stack((x, y))", "m.reshape(-1)", "m.T", "m.ravel()", "cp.expand_dims(x, 0)", "x.fill(0.0)", "x[1:-1]",
    "x[5]", "m[3, 4]", "m[-1, i % 30]", "x[i % 30] = 0.0", "x[1:-1] = 0.5", "m[2, i % 30] = 1.0", "x[:] = y",
    "x[1:-1] += y[2:]", "x[2] = y[3]", "cp.full(9, next(new))", "x[b]", "x[b] = y[b]",
)  # fmt: skip


#: What is done with arrays of which nobody knows how long they are, beside the same with others.
_CHOSEN = (
    "x * 2.0", "u * 2.0", "x + y", "u + v", "-x", "-u", "x > 0.5", "u > 0.5", "x.sum()", "u.sum()", "x - x.mean()",
    "u - u.mean()", "x.astype(cp.float32)", "u.astype(cp.float32)", "cp.where(b, x, y)", "cp.where(u > 0, u, v)",
    "x[b]", "x[b] * 2.0", "x[b] + y[b]", "x[b].sum()", "x[b] = 0.5", "x[b] = y[b]", "x[b] += 1.0", "x[b] += y[b]",
    "x[b] = y[b] * 2.0", "cp.where(b, x, y)[b]", "cp.nonzero(b)",
)  # fmt: skip
#: The same, where it is waited for.
_SUMMED = ("float(x.sum())", "float(u.sum())", "float(x[b].sum())")
#: What waits for an answer.
_TRIPS = ("float(x[3])", "x[3].item()", "bool(b[3])")
#: What is known: a number, and small arrays of whole numbers and of others.
_KNOWN = (
    "n & 1", "n >> 1", "n ^ 4129", "t[3] + t[4]", "t[3] > 2", "f[3] * 0.5", "t + 1", "t[3] = t[4]", "bool(t[3] > 2)",
)  # fmt: skip
#: What is copied: within a message, and beside it.
_COPIED = ("cp.asarray(less); done()", "cp.asarray(more); done()", "cp.asarray(most); done()", "h.get()", "g.get()")
_SIDES = {
    "--recorded": _KINDS, "--chosen": _CHOSEN, "--answered": _TRIPS, "--summed": _SUMMED, "--known": _KNOWN,
    "--copied": _COPIED,
}  # fmt: skip


class _Echo:
    """A link whose executor answers each message at once, by a number."""

    is_torn = is_cut = False

    def __init__(self) -> None:
        from gpu_backend.wire import messages as wire
        from gpu_backend.wire.codec import Codec

        self._codec: Any = Codec(wire.ToExecutor)
        self._message: Any = None

    def send(self, frames: Any) -> bool:
        self._message = frames
        return True

    def receive(self, timeout_seconds: float) -> Any:
        from gpu_backend.wire.codec import encode
        from gpu_backend.wire.messages import Reply
        from gpu_backend.wire.values import Buffer

        if self._message is None:
            return None
        batch, self._message = self._codec.decode(self._message), None
        seq = batch.first + len(batch.ops) - 1
        return encode(Reply(seq, Buffer(-1, "<f8", (), bytes(8)), (), seq))


def _by_rings() -> Any:
    """Return a link by rings in this process, whose executor answers each message at once, by blocks if it is large."""
    from gpu_backend.transport import joining
    from gpu_backend.transport.framing import MessageReader
    from gpu_backend.transport.message_socket import MessageSocket
    from kernelproxy.session.links import Link

    ends = socket.socketpair()
    for one in ends:
        one.setblocking(False)
    room = joining.make()
    joining.offer(ends[0], room)
    memories = joining.offered(ends[1]), joining.joined(ends[0], room)
    assert joining.is_taken(ends[0])
    near, far = [MessageSocket(one.stream, MessageReader(one.stream, one.frames)) for one in memories if one]
    executor = _Copier(far)

    class Answered(Link):
        def receive(self, timeout_seconds: float) -> Any:
            executor.answer()
            return super().receive(timeout_seconds)

    return Answered(near)


class _Copier:
    """Answers who waits, with as many bytes as were written into what is asked for."""

    def __init__(self, heard: Any) -> None:
        from gpu_backend.wire import messages as wire
        from gpu_backend.wire.codec import Codec

        self._heard = heard
        self._codec: Any = Codec(wire.ToExecutor)
        self._sizes: dict[int, int] = {}

    def answer(self) -> None:
        from gpu_backend.wire.codec import encode
        from gpu_backend.wire.messages import Reply
        from gpu_backend.wire.values import Buffer

        message = self._heard.receive()
        if message is None:
            return
        batch = self._codec.decode(message)
        for op in batch.ops:
            if op.name == ".write":
                self._sizes[op.args[0].handle] = op.args[2].shape[0]
        op, seq = batch.ops[-1], batch.first + len(batch.ops) - 1
        lent = self._heard.lend(self._sizes[op.args[0].handle]) if op.name == ".same" else None
        value = None if lent is None else Buffer(0, "|u1", lent.shape)
        self._heard.send(encode(Reply(seq, value, (), seq), [] if lent is None else [lent.data]))


class _Package:
    """Stands for the module ``cupy``."""

    def __getattr__(self, name: str) -> Any:
        from kernelproxy.namespace import names

        made = names.make(f"cupy.{name}")
        setattr(self, name, made)
        return made


def _copies() -> tuple[dict[str, Any], Callable[[], None]]:
    """Return what copies name, and what is done between two turns: nothing."""
    import numpy as np

    from kernelproxy.client import current

    scope, _ = _scope(True, False, False)
    pipeline = current().pipeline
    pipeline.connection._link, pipeline.connection.endpoint = _by_rings(), "unix-abstract://here/there"
    for costs in pipeline.ahead.costs:
        for name in ("cupy.empty", ".write"):
            costs[name].learn(0.0)  # or each would be sent at once
    from gpu_backend.wire.messages import Want

    scope["done"] = lambda: pipeline.call(".synchronize", (), Want.CONTENTS)
    scope |= {
        name: np.zeros(size, np.uint8) for name, size in (("less", 1 << 12), ("more", 1 << 17), ("most", 1 << 20))
    }
    scope["h"], scope["g"] = scope["cp"].asarray(scope["more"]), scope["cp"].asarray(scope["most"])
    return scope, scope["done"]


def _scope(is_heard: bool, is_known: bool, is_watched: bool) -> tuple[dict[str, Any], Callable[[], None]]:
    """Return what the calls name, and what forgets that they were recorded, unless they are heard and answered.

    With ``is_known`` the client may compute as much as it wants to, with ``is_watched`` it notes who writes what.
    """
    from kernelproxy.client import current
    from kernelproxy.mirror.host_mirror import HostMirror
    from tests.unit.kernelproxy.played import PlayedExecutor

    played: Any = SimpleNamespace(pipeline=PlayedExecutor().pipeline())
    current().adopt(played)
    pipeline = current().pipeline
    if is_known:
        pipeline.mirror = HostMirror()
    if is_heard:
        pipeline.connection._link = _Echo()
    else:
        pipeline.most_ops = 1 << 40

    def forget() -> None:
        if not is_heard:
            pipeline.dropped.clear()
            pipeline.open_batch = type(pipeline.open_batch)(1)
        pipeline.mirror.worth.budget = is_known << 40
        for costs in pipeline.ahead.costs:
            for cost in costs.values():
                cost.learn(0.0)  # or each op would be sent at once

    cp: Any = _Package()
    made = _arrays(cp)
    if is_watched:
        pipeline.mirror = HostMirror()  # what was made before is nothing that it knows
        made["b"] = made["x"] > 0.5
        made["u"], made["v"] = made["x"][made["b"]], made["y"][made["b"]]
    return {"cp": cp, "i": 0, "new": count(0.5), **made}, forget


def _arrays(cp: Any) -> dict[str, Any]:
    """Return the arrays that the calls name, by their names."""
    return {
        "x": cp.zeros(30),
        "y": cp.ones(30),
        "z": cp.zeros(30),
        "m": cp.ones((30, 30)),
        "b": cp.zeros(30, dtype="?"),
        "n": cp.full((), 12345),
        "t": cp.arange(30),
        "f": cp.ones(30),
    }


def _side(kinds: tuple[str, ...]) -> None:
    """Take turns when told to: one line of JSON for each line read."""
    scope, forget = (
        _copies()
        if kinds is _COPIED
        else _scope(kinds in (_TRIPS, _SUMMED), kinds is _KNOWN, kinds in (_CHOSEN, _SUMMED))
    )
    forget()
    timed: dict[str, Callable[[], float]] = {}
    for kind in kinds:
        exec(_TIMED.format(kind), scope)
        timed[kind] = scope["timed"]
    for _ in sys.stdin:
        taken = {}
        for kind, run in timed.items():
            run(3, perf_counter)
            forget()
            taken[kind] = run(CALLS, perf_counter) / CALLS * 1e6
        print(json.dumps(taken), flush=True)


_TIMED = """
def timed(calls, clock):
    started = clock()
    for i in range(calls):
        {}
    return clock() - started
"""


def _start(tree: str, side: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": tree}
    command = [sys.executable, "-P", str(Path(__file__).resolve()), side]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=tree
    )


def _turn(side: subprocess.Popen[str]) -> dict[str, float]:
    assert side.stdin is not None
    assert side.stdout is not None
    side.stdin.write("\n")
    side.stdin.flush()
    taken: dict[str, float] = json.loads(side.stdout.readline())
    return taken


def main(trees: list[str]) -> None:
    """Print a row for each kind of call, with a column for each tree."""
    for side, kinds in _SIDES.items():
        sides = [_start(str(Path(tree).resolve()), side) for tree in trees]
        turns = [[_turn(one) for one in sides] for _ in range(TURNS)]
        for one in sides:
            one.communicate()
        for kind in kinds:
            least = [min(turn[place][kind] for turn in turns) for place in range(len(sides))]
            print(f"{kind:32}", *[f"{took:8.2f}" for took in least])


if __name__ == "__main__":
    _side(_SIDES[sys.argv[1]]) if sys.argv[1] in _SIDES else main(sys.argv[1:])
