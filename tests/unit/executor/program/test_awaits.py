"""Ops that lack something: they run when that has come, and keep nothing when they are dropped."""

from __future__ import annotations

from gpu_backend.executor.channels import Awaits
from gpu_backend.wire import values
from gpu_backend.wire.channels import RECEIVE
from gpu_backend.wire.messages import Op
from gpu_backend.wire.values import Ref

from .played import PlayedNotebook


def test_an_op_that_lacks_something_is_run_when_that_has_come() -> None:
    """What it drops is dropped once, and what is before it has run."""
    lacks, calls = True, []

    def receive(array: object, offset: int, channel: str, number: int) -> None:
        calls.append(number)
        if lacks:
            raise Awaits(lambda: not lacks)

    notebook = PlayedNotebook()
    notebook.stream._functions[RECEIVE] = receive
    ops = (
        Op("cupy.zeros", 1, (values.Tuple((3,)),)),
        Op("cupy.zeros", 2, (values.Tuple((3,)),)),
        Op(RECEIVE, 0, (0, 0, "n", 7), (2,)),
        Op("cupy.add", 3, (Ref(1), 1.0)),
    )
    notebook.send(*ops)
    batch = notebook.talk.front()
    assert batch is not None
    place, answer = notebook.stream.run(batch, float("inf"))
    assert (place, answer) == (2, None)
    notebook.talk.advance(batch, place)
    assert not notebook.talk.has_work
    lacks = False
    notebook.work()
    assert calls == [7, 7]
    assert notebook.contents(Ref(3)).tolist() == [1.0] * 3
    assert 2 not in notebook.stream.heap.objects


def test_one_that_is_dropped_keeps_nothing_behind_it() -> None:
    def receive(array: object, offset: int, channel: str, number: int) -> None:
        raise Awaits(lambda: False)

    notebook = PlayedNotebook()
    notebook.stream._functions[RECEIVE] = receive
    notebook.send(Op(RECEIVE, 0, (0, 0, "n", 7)), Op("cupy.zeros", 1, (values.Tuple((3,)),)))
    batch = notebook.talk.front()
    assert batch is not None
    assert notebook.stream.run(batch, float("inf")) == (0, None)
    notebook.talk.advance(batch, notebook.stream.cancel(batch)[0])
    notebook.work()
    assert notebook.contents(Ref(1)).tolist() == [0.0] * 3
