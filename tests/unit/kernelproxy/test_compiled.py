"""The compiled ways of recording: they do what the Python ones do, hold on to nothing, and can be left out."""

from __future__ import annotations

import copy
import gc
import inspect
import os
import subprocess
import sys
import threading
import weakref
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from gpu_backend.wire import values as wire
from gpu_backend.wire.messages import Op, Want
from kernelproxy import compiled
from kernelproxy.calls import dispatch, repeats, selections, stores
from kernelproxy.calls.array_core import ArrayCore
from kernelproxy.calls.later_layout import LaterLayout, Rows
from kernelproxy.client import Client
from kernelproxy.mirror.host_mirror import HostMirror
from kernelproxy.namespace.names import make
from kernelproxy.stream.forms import Form
from tests.unit.kernelproxy.conftest import played_client
from tests.unit.kernelproxy.played import PlayedExecutor

needs_core = pytest.mark.skipif(not compiled.is_compiled, reason="nothing is compiled here")


@pytest.fixture
def client() -> Any:
    """The process's client, with an executor that is played."""
    with played_client() as client:
        yield client


def turn(x: Any, y: Any) -> None:
    """Go every way, in about 20 ops."""
    z = x + y
    z = 2.0 * z - 1
    z += y
    z *= 0.5
    z = z * np.float64(2.5) - np.int16(3)
    z += np.float32(1)
    assert (np.float64(2) * z).shape == z.shape
    x[1:-1] += y[2:]
    assert (-z).shape == (x < z).shape
    assert x[1:-1][::2].base is x
    assert x[3].ndim == x.sum().ndim == (x @ y).ndim == x.max(axis=0, keepdims=False).ndim == 0
    call_again(x, y, z)


def call_again(x: Any, y: Any, z: Any) -> None:
    """Make calls of all the shapes that a way knows: with keywords, lists, dtypes, scalars, windows, and stores."""
    assert (x**2).dtype == x.dtype != (2j * x).dtype
    x[2] = 0.5
    x[3:5] = y[3:5]
    assert make("cupy.add")(x, y, out=z) is z
    assert make("cupy.stack")([x, y], axis=0).shape == (2, 30)
    assert make("cupy.zeros")((3, 2), dtype=np.float32).size == x.astype("i4").size - 24
    assert make("cupy.expand_dims")(x, axis=(0,)).base is x
    assert make("cupy.full")(3, np.float64(2)).ndim == make("cupy.linalg.norm")(x, None, None, True).ndim
    x.fill(0.25)


def empty(pipeline: Any) -> None:
    """Forget what was recorded."""
    pipeline.dropped.clear()
    pipeline.open_batch = type(pipeline.open_batch)(1)
    pipeline.most_ops = 1 << 40
    for costs in pipeline.ahead.costs:
        for cost in costs.values():
            cost.learn(0.0)  # or each op would be sent at once


def recorded(client: Client, are_used: bool) -> list[Any]:
    """Return what the open batch holds after some turns, and where each op was recorded."""
    x, y = make("cupy.zeros")(30), make("cupy.ones")(30)
    for _ in range(2):
        turn(x, y)
        empty(client.pipeline)
    client.pipeline.next_handle = 1_000
    with compiled.used(are_used):
        for _ in range(3):
            turn(x, y)
    batch = client.pipeline.open_batch
    bases = {x._ref.handle: "x", y._ref.handle: "y"}
    told: list[Any] = []
    for place, op in enumerate(batch.ops):
        args = [_named(arg, bases) for arg in op.args]
        told.append((op.name, op.out, args, op.kwargs, op.drop, op.reuse, op.stream, batch.sites[place]))
    return told


def _named(arg: Any, bases: dict[int, str]) -> object:
    if isinstance(arg, (wire.List, wire.Tuple)):
        return type(arg), [_named(one, bases) for one in arg.items]
    handle = getattr(arg, "handle", None) or getattr(arg, "root", None)
    return (type(arg), bases.get(handle, handle), getattr(arg, "offset", None)) if handle else arg


@needs_core
def test_both_ways_record_the_same_at_the_same_places(client: Client) -> None:
    pure = recorded(client, False)
    empty(client.pipeline)
    assert recorded(client, True) == pure
    assert len(pure) > 60


@pytest.mark.parametrize("are_used", [False, True])
def test_where_an_op_never_came_the_next_one_is(client: Client, are_used: bool) -> None:
    x = make("cupy.zeros")(30)
    for _ in range(2):  # and then it is known
        assert (x + x).ndim == 1
    empty(client.pipeline)
    batch = client.pipeline.open_batch
    batch.sites.append(None)  # as an interrupt leaves it that strikes before the op is there
    with compiled.used(are_used):
        assert (x + x).ndim == (x * x).ndim
    assert len(batch.sites) == len(batch.ops) == 2
    assert None not in batch.sites


@needs_core
def test_nothing_is_held_on_to(client: Client) -> None:
    pipeline = client.pipeline
    x, y = make("cupy.zeros")(30), make("cupy.ones")(30)

    def turns(count: int) -> list[int]:
        for _ in range(count):
            turn(x, y)
            empty(pipeline)
        gc.collect()
        form: Any = next(form for form in pipeline.forms.values() if form.name == "cupy.add")
        objects = (x, x._layout, y._ref, x[1:-1]._layout, client, pipeline, form, form.made, form.cost, pipeline.mirror)
        return [*map(sys.getrefcount, objects), sum(isinstance(one, ArrayCore | Form) for one in gc.get_objects())]

    turns(10)
    before = turns(1)
    allocated = sys.getallocatedblocks()
    assert turns(10_000) == before  # 200,000 ops
    assert sys.getallocatedblocks() - allocated < 1_000


def choose(x: Any, y: Any, b: Any) -> None:
    """Go the ways of what a mask chooses, whose length nobody knows."""
    u, v = x[b], y[b]
    w = 2.0 - (u + v) * np.float32(2)
    w += v
    w *= 0.5
    x[b] = -w
    x[b] = 0.5
    assert make("cupy.where")(w > 0, w, 0.0).ndim == make("cupy.nonzero")(b)[0].ndim == 1
    assert w.sum().ndim == make("cupy.hypot")(u, w).sum(axis=0).ndim == 0
    assert w.astype("f4").dtype == "f4"


@pytest.fixture
def masked(client: Client) -> tuple[Any, Any, Any]:
    """Two arrays and a mask of them, for a client that notes who writes what."""
    client.pipeline.mirror = HostMirror()
    x = make("cupy.zeros")(30) + 1.0
    return x, x * 2.0, x > 0.5


@needs_core
def test_what_a_mask_chooses_is_recorded_by_the_core_alone(
    masked: tuple[Any, Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    choose(*masked)
    for part, name in (
        (repeats, "known_by"),
        (selections, "known_as"),
        (stores, "store_of_chosen"),
        (stores, "store_where"),
    ):
        monkeypatch.setattr(part, name, None)
    choose(*masked)
    with compiled.used(False), pytest.raises(TypeError, match="not callable"):
        choose(*masked)


@needs_core
def test_nothing_is_held_on_to_of_what_a_mask_chooses(client: Client, masked: tuple[Any, Any, Any]) -> None:
    pipeline = client.pipeline

    def turns(count: int) -> list[int]:
        for _ in range(count):
            choose(*masked)
            empty(pipeline)
        gc.collect()
        known: Any = pipeline.mirror.known[masked[2]._ref.handle]
        kinds = [form.rows for form in pipeline.forms.values() if form.rows is not None]
        objects = (*masked, masked[2]._ref, known, client, pipeline, *kinds)
        kept = sum(isinstance(one, ArrayCore | LaterLayout | Rows) for one in gc.get_objects())
        return [*map(sys.getrefcount, objects), kept]

    turns(10)
    before = turns(1)
    allocated = sys.getallocatedblocks()
    assert turns(3_000) == before
    assert sys.getallocatedblocks() - allocated < 1_000


@pytest.mark.parametrize("are_used", [False, True])
def test_large_results_of_unknown_lengths_are_counted(
    client: Client, masked: tuple[Any, Any, Any], are_used: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory, (x, y, b) = client.pipeline.memory, masked
    memory.set_limit(1 << 20)
    monkeypatch.setattr(memory, "small_bytes", 100)

    def made() -> list[Any]:
        return [x[b], x[b] + y[b], -x[b], x[b] * 2.0, x[b].copy(), make("cupy.nonzero")(b)[0]]

    with compiled.used(are_used):
        made()
        monkeypatch.setattr(dispatch, "run_proved", None)
        assert [memory.held[one._ref.handle] for one in made()] == [x.nbytes] * 6
        chosen = x[b]
        memory.set_limit(4 * x.nbytes)  # now a result may be too large, and is waited for
        for again in (lambda: x[b], lambda: chosen * 2.0, lambda: -chosen, chosen.copy, lambda: chosen + chosen):
            with pytest.raises(TypeError, match="not callable"):
                again()


@needs_core
def test_trips_hold_on_to_nothing() -> None:
    executor = PlayedExecutor()
    pipeline = executor.pipeline()
    args, objects = ("told",), (pipeline, pipeline.inbox, pipeline.journal.marks, pipeline.connection, pipeline.credit)

    def trips(count: int) -> list[int]:
        for _ in range(count):
            pipeline.dropped += (1, None), (2, None)
            pipeline.record("op", args)
            assert pipeline.call("op", args, Want.CONTENTS).value == "told"
            executor.done.clear()
            executor.dropped.clear()
        gc.collect()
        assert not pipeline.inbox.answers
        return [
            *map(sys.getrefcount, (args, *objects)),
            sum(isinstance(one, Op) for one in gc.get_objects()),
        ]

    trips(2_000)  # what is remembered is bounded, and full by then
    before = trips(1)
    allocated = sys.getallocatedblocks()
    assert trips(1_000) == before
    assert sys.getallocatedblocks() - allocated < 500


def test_both_ways_ask_the_same() -> None:
    def asked(are_used: bool) -> list[Any]:
        executor = PlayedExecutor(credit_ops=6)
        pipeline = executor.pipeline()
        sites: list[Any] = []
        with compiled.used(are_used):
            for number in range(20):
                pipeline.record("op", (f"a{number}",))
                pipeline.dropped += ((100 + number, None),) * (number % 3)
                seq = pipeline.ask("op", (f"b{number}",), Want.CONTENTS, None, None, number % 2 << 48)
                found = pipeline.journal.find(seq)
                assert found is not None
                op, site = found[0].at(found[1])
                assert site is not None
                sites.append((op, site.line, site.code.co_name, found[0].costs))
                assert pipeline.answer(seq).value == f"b{number}"
                pipeline.record("fail", (f"c{number}",))
                with pytest.raises(ValueError, match=f"c{number} failed"):  # the earlier of two that failed
                    pipeline.call("fail", (f"d{number}",), Want.CONTENTS)
        counted = pipeline.counters.to_dict(), pipeline.next_handle, pipeline.most_ops, pipeline.inbox.received
        return [executor.done, executor.dropped, len(sites), [one[:3] for one in sites], counted]

    assert asked(True) == asked(False)


@pytest.mark.parametrize("are_used", [False, True])
def test_large_results_are_found_again_and_counted(
    client: Client, are_used: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = client.pipeline.memory
    memory.set_limit(1 << 20)
    x, y = make("cupy.zeros")(100), make("cupy.ones")(100)

    def made() -> list[Any]:
        return [x + y, -x, x * 2.0, x**2, make("cupy.sin")(x), make("cupy.where")(x, x, y)]

    with compiled.used(are_used):
        made()
        monkeypatch.setattr(dispatch, "run_proved", None)
        assert [memory.held[one._ref.handle] for one in made()] == [x.nbytes] * 6
        assert x.nbytes > memory.small_bytes
        memory.set_limit(4 * x.nbytes)  # now a result may be too large, and is waited for
        for again in (lambda: x + y, lambda: x * 2.0, lambda: make("cupy.sin")(x), lambda: make("cupy.where")(x, x, y)):
            with pytest.raises(TypeError, match="not callable"):
                again()


@needs_core
def test_what_is_raised_on_the_way_leaves_the_lock_free(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = make("cupy.zeros")(30), make("cupy.ones")(30)
    turn(x, y)
    empty(client.pipeline)

    def strike(*args: object) -> None:
        raise KeyboardInterrupt

    mirror = client.pipeline.mirror
    monkeypatch.setattr(mirror, "is_on", True)
    monkeypatch.setattr(mirror, "note", strike)
    mirror.known[x._ref.handle] = None  # type: ignore[assignment]
    with pytest.raises(KeyboardInterrupt):
        x += y
    mirror.known.clear()
    assert not client.pipeline.open_batch.ops
    free: list[bool] = []
    other = threading.Thread(target=lambda: free.append(client.pipeline.recording.acquire(blocking=False)))
    other.start()
    other.join()
    assert free == [True]


@needs_core
def test_a_way_says_of_itself_what_its_function_does() -> None:
    array: Any = make("cupy.ndarray")
    assert array.__add__.__name__ == "operator"
    assert str(inspect.signature(array.__getitem__)) == "(self, key: 'Any') -> 'Any'"
    assert array.__del__.__wrapped__ is not array.__del__


@pytest.mark.parametrize("name", ["sum", "__getitem__", "__matmul__", "__add__"])
def test_a_way_is_found_again_where_a_function_would_be(name: str) -> None:
    way = getattr(make("cupy.ndarray"), name)
    assert copy.copy(way) is copy.deepcopy(way) is way
    assert weakref.ref(way)() is way
    assert type(way).__name__ == "function" or way.__reduce__() == way.__qualname__


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("off", "False"),
        ("auto", str(find_spec("kernelproxy._core") is not None)),
        ("perhaps", "It may be on, off or auto."),
    ],
)
def test_the_environment_chooses(said: str, told: str) -> None:
    run = subprocess.run(
        [sys.executable, "-c", "from kernelproxy import compiled; print(compiled.is_compiled)"],
        env={**os.environ, compiled.CORE_VARIABLE: said}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert told in (run.stdout or run.stderr)
