"""What is made of arrays of which nothing is known is tried by nobody, and the core needs no Python to see that."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from gpu_backend.opstream.layout import Layout, contiguous
from gpu_backend.wire.messages import Want
from gpu_backend.wire.values import List, Ref, Tuple, Value, View
from kernelproxy import compiled
from kernelproxy.mirror.entries import Awaited, Counted, Number
from kernelproxy.mirror.host_mirror import HostMirror
from kernelproxy.mirror.worth import GRANT
from kernelproxy.stream.mirrored import MirroredPipeline
from kernelproxy.stream.recorder import Args, Kwargs
from tests.unit.kernelproxy.played import PlayedExecutor

FOUR, ONE = contiguous((4,), np.dtype("f8")), contiguous((), np.dtype("f8"))
NUMBERS = np.arange(4.0)
#: The first is known, the second not.
KNOWN, UNKNOWN = 1, 2
WINDOW = View(UNKNOWN, 8, (), (), "<f8", "")
#: Ops that are given something of which nothing is known.
IN_VAIN: list[tuple[str, Args, Kwargs, Layout]] = [
    ("cupy.add", (Ref(UNKNOWN), Ref(UNKNOWN)), None, FOUR),
    ("cupy.add", (Ref(KNOWN), Ref(UNKNOWN)), None, FOUR),
    ("cupy.multiply", (2.0, Ref(UNKNOWN)), None, FOUR),
    ("cupy.negative", (WINDOW,), None, ONE),
    ("cupy.ndarray.sum", (Ref(UNKNOWN),), {"axis": 0}, ONE),
    ("cupy.concatenate", (List((Ref(KNOWN), Ref(UNKNOWN))),), None, FOUR),
    ("cupy.stack", (Tuple((List((1.0, WINDOW)), 2.0)),), {"axis": 0}, FOUR),
    ("cupy.ndarray.max", (Ref(UNKNOWN),), {"keepdims": True}, ONE),
]


def mirrored() -> MirroredPipeline:
    executor = PlayedExecutor()
    pipeline = MirroredPipeline(executor.connect(), executor.renew)
    pipeline.mirror = HostMirror()
    pipeline.mirror.keep(KNOWN, FOUR, NUMBERS.tobytes())
    pipeline.mirror.worth.note_trip()
    pipeline.next_handle = 100
    pipeline.flush = lambda: None  # type: ignore[method-assign]  # all stays in the open batch
    return pipeline


def record(pipeline: MirroredPipeline, name: str, args: Args, kwargs: Kwargs = None, made: Layout = FOUR) -> int:
    return pipeline.record(name, args, 1, kwargs, made=made)


@pytest.mark.usefixtures("both_ways")
@pytest.mark.parametrize(("name", "args", "kwargs", "made"), IN_VAIN)
def test_what_cannot_be_computed_costs_nothing(name: str, args: Args, kwargs: Kwargs, made: Layout) -> None:
    pipeline = mirrored()
    out = record(pipeline, name, args, kwargs, made)
    assert pipeline.mirror.worth.budget == GRANT
    assert out not in pipeline.mirror.known
    assert KNOWN in pipeline.mirror.known


@pytest.mark.skipif(not compiled.is_compiled, reason="nothing is compiled here")
@pytest.mark.parametrize(("name", "args", "kwargs", "made"), IN_VAIN)
def test_the_core_sees_that_by_itself(
    monkeypatch: pytest.MonkeyPatch, name: str, args: Args, kwargs: Kwargs, made: Layout
) -> None:
    looked: list[object] = []
    monkeypatch.setattr(HostMirror, "note", lambda mirror, *given: looked.append(given))
    pipeline = mirrored()
    record(pipeline, name, args, kwargs, made)
    assert not looked
    record(pipeline, "cupy.add", (Ref(KNOWN), 1.0))
    assert looked, "what is known of may be computed"


@pytest.mark.usefixtures("both_ways")
def test_what_is_known_is_computed_and_paid_for() -> None:
    pipeline = mirrored()
    out = record(pipeline, "cupy.add", (Ref(KNOWN), Ref(KNOWN)))
    assert pipeline.mirror.read(Ref(out), FOUR).tolist() == [0, 2, 4, 6]  # type: ignore[union-attr]
    first = View(KNOWN, 8, (), (), "<f8", "")
    number = record(pipeline, "cupy.add", (first, 2.0), made=ONE)
    assert pipeline.mirror.number(Ref(number), ONE) == 3.0
    tried = record(pipeline, "cupy.stack", (List((Ref(KNOWN), Ref(KNOWN))),))  # NumPy is not asked for it
    assert tried not in pipeline.mirror.known
    assert pipeline.mirror.worth.budget == GRANT - 3 + 2 * GRANT


@pytest.mark.usefixtures("both_ways")
@pytest.mark.parametrize("name", ["out", "output", "overwrite_a"])
def test_what_a_keyword_has_written_is_known_no_more(name: str) -> None:
    pipeline = mirrored()
    record(pipeline, "cupy.clip", (Ref(UNKNOWN), 0, 1), {name: Ref(KNOWN)})
    assert KNOWN not in pipeline.mirror.known


_NAMES = ("cupy.add", "cupy.maximum", "cupy.negative", "cupy.ndarray.sum", "cupy.zeros", "gone")


def _play(are_used: bool, seed: int) -> list[object]:
    """Return what is known behind each of some ops and ends of arrays at random."""
    chance, pipeline, told = random.Random(seed), mirrored(), []
    mirror, handles = pipeline.mirror, [KNOWN, UNKNOWN]
    with compiled.used(are_used):
        for _ in range(60):
            name = chance.choice(_NAMES)
            operands: list[Value] = [Ref(chance.choice(handles)) for _ in range(2)]
            if chance.random() < 0.3:
                operands[1] = chance.choice((2.0, View(chance.choice(handles), 0, (4,), (8,), "<f8", "")))
            if name == "gone" and len(handles) > 2:
                count = chance.choice((1, 2))
                layout = chance.choice((FOUR, None))
                pipeline.dropped.extend((handles.pop(), layout) for _ in range(min(count, len(handles) - 2)))
            elif name != "gone":
                args: Args = tuple(operands[: 1 + name.endswith(("d", "maximum"))]) if name != "cupy.zeros" else (4,)
                made = ONE if name.endswith("sum") else FOUR
                handles.append(pipeline.record(name, args, made=made, layout=chance.choice((made, None))))
            told.append((sorted(mirror.known), mirror._held_bytes, mirror.worth.budget, sorted(mirror.barred)))
        ops = [(op.name, op.out, op.args, op.drop, op.reuse) for op in pipeline.open_batch.ops]
    return [*told, ops, {handle: mirror.read(Ref(handle), FOUR) is not None for handle in sorted(mirror.known)}]


@pytest.mark.parametrize("seed", range(20))
def test_both_ways_come_to_know_the_same(seed: int) -> None:
    assert _play(True, seed) == _play(False, seed)


@pytest.mark.usefixtures("both_ways")
def test_what_is_dropped_is_known_no_more_in_any_way() -> None:
    pipeline = mirrored()
    mirror = pipeline.mirror
    mirror.publish(3, Awaited(FOUR))
    mirror.publish(4, Number(ONE, 2.0, may_be_nan=False))
    mirror.publish(5, Counted())
    mirror.barred.add(6)
    mirror._missed.update(dict.fromkeys((3, 6)))
    pipeline.dropped.extend((handle, FOUR) for handle in (KNOWN, UNKNOWN, 3, 4, 5, 6))
    record(pipeline, "cupy.negative", (WINDOW,), made=ONE)
    assert not pipeline.dropped
    assert (mirror.known, mirror._held_bytes, mirror.barred, mirror._missed) == ({}, 0, set(), {})
    assert pipeline.open_batch.ops[-1].drop == (KNOWN, UNKNOWN, 3, 4, 5, 6)


@pytest.mark.skipif(not compiled.is_compiled, reason="nothing is compiled here")
def test_what_is_dropped_is_forgotten_by_the_core(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []
    monkeypatch.setattr(HostMirror, "drop", lambda mirror, handle: calls.append(handle))
    pipeline = mirrored()
    pipeline.dropped.append((KNOWN, FOUR))
    pipeline.ask(".same", (Ref(UNKNOWN),), Want.CONTENTS)
    assert not calls
    assert not pipeline.mirror.known


def test_who_reads_what_is_unknown_hears_of_failures_from_its_trip() -> None:
    pipeline = mirrored()
    pipeline.record("fail", ("it",), 0)
    asked = pipeline.ask("op", ("later",), Want.CONTENTS)
    while pipeline.inbox.seen(asked) is None:
        pipeline.read(0.01)
    assert pipeline.known(Ref(UNKNOWN), FOUR) is None
    with pytest.raises(ValueError, match="it failed"):
        pipeline.call("op", ("and this",), Want.CONTENTS)
