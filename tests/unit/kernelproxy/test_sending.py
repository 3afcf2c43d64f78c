"""What is sent is counted alike by the compiled core and by Python: ops, credit, marks, sizes and bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_backend.wire.messages import Want
from gpu_backend.wire.values import Buffer
from kernelproxy import compiled
from kernelproxy.stream.mirrored import MirroredPipeline

from .played import PlayedExecutor

CONTENTS = Want.CONTENTS


@pytest.fixture(params=[True, False], ids=["compiled", "in Python"])
def is_quick(request: pytest.FixtureRequest) -> Iterator[bool]:
    """Whether quick ways are taken."""
    with compiled.used(request.param):
        yield request.param and compiled.is_compiled


def state(pipeline: MirroredPipeline) -> dict[str, Any]:
    """Return what is counted of what was sent."""
    counters, credit, marks = pipeline.counters, pipeline.credit, pipeline.journal.marks
    return {
        "counted": (counters.ops, counters.batches, counters.round_trips), "cursor": pipeline.journal.cursor,
        "under way": (credit.ops_in_flight, credit.bytes_in_flight), "seconds": pipeline.ahead.seconds,
        "marks": (marks.recorded, marks.sent, marks.taken, marks.applied, marks.done, marks.durable),
        "sizes": [entry.size for entry in pipeline.journal.held()], "bytes": pipeline.connection.bytes_sent,
        "told": (pipeline.inbox._untold_reads, pipeline.inbox._untold_bytes),
    }  # fmt: skip


def upload(pipeline: MirroredPipeline, size: int, within: bool) -> None:
    data = b"1" * size

    def make(frame: int) -> tuple[str, tuple[Any, ...]]:
        return ".write", (data.decode(), Buffer(frame, "|u1", (size,), data if frame < 0 else b""))

    pipeline.record_upload(make, data, within=within)


STEPS: dict[str, Callable[[MirroredPipeline], object]] = {
    "op": lambda pipeline: pipeline.record("op", (7,)),
    "call": lambda pipeline: pipeline.call("op", (8,), CONTENTS),
    "ask": lambda pipeline: pipeline.ask("op", (9,), CONTENTS),
    "within": lambda pipeline: upload(pipeline, 40, True),
    "beside": lambda pipeline: upload(pipeline, 50, False),
    "nothing": lambda pipeline: upload(pipeline, 0, False),
    "flush": lambda pipeline: pipeline.flush(),
}


@given(st.lists(st.sampled_from(sorted(STEPS)), max_size=30), st.integers(3, 12), st.integers(60, 200))
def test_what_was_sent_is_counted_alike_both_ways(steps: list[str], credit_ops: int, credit_bytes: int) -> None:
    def outcome(is_used: bool) -> list[object]:
        with compiled.used(is_used):
            executor = PlayedExecutor(credit_ops, credit_bytes)
            pipeline, found = executor.pipeline(), []
            for step in steps:
                STEPS[step](pipeline)
                found.append(state(pipeline))
            return [*found, executor.done]

    assert outcome(True) == outcome(False)


def test_bytes_that_travel_within_a_message_take_credit(is_quick: bool) -> None:
    pipeline = PlayedExecutor().pipeline()
    upload(pipeline, 40, True)
    pipeline.ask("op", (1,), CONTENTS)
    assert pipeline.credit.bytes_in_flight == 40


def test_what_cannot_be_put_into_bytes_fails_alone(is_quick: bool) -> None:
    executor = PlayedExecutor()
    pipeline = executor.pipeline()
    pipeline.record("op", (1,))
    with pytest.raises(ValueError, match="cannot be sent"):
        pipeline.call("op", (object(),), CONTENTS)  # type: ignore[arg-type]
    assert pipeline.call("op", (3,), CONTENTS).value == 3
    assert [word for _, word in executor.done if word in (1, 3)] == [1, 3]
