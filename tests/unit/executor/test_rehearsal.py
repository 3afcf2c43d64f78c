"""The last question asked again: which one, for how long, and that nobody notices."""

from __future__ import annotations

import pytest

from gpu_backend.executor.answer import Answer
from gpu_backend.executor.conversation import QueuedBatch
from gpu_backend.executor.rehearsal import Rehearsal
from gpu_backend.wire.errors import ErrorRecord
from gpu_backend.wire.messages import Op, Want
from gpu_backend.wire.values import Buffer, Ref, View
from tests.unit.executor.program.played import PlayedNotebook

SMALL, LARGE, NUMBER = 1, 2, 3
MADE = (Op("cupy.ones", SMALL, (3,)), Op("cupy.ones", LARGE, (100_000,)), Op("cupy.ndarray.sum", NUMBER, (Ref(SMALL),)))


def read(handle: int, **otherwise: object) -> Op:
    return Op(".same", 0, (Ref(handle),), None, Want.CONTENTS, **otherwise)  # type: ignore[arg-type]


class Rehearsing(PlayedNotebook):
    """A notebook's ops, and what is asked again behind them."""

    def __init__(self) -> None:
        super().__init__()
        self.ran: list[Op] = []
        self.rehearsal = Rehearsal(self._noting)
        self.run(*MADE)

    def _noting(self, batch: QueuedBatch) -> tuple[int, Answer | None]:
        assert self.rehearsal.is_on
        self.ran += batch.ops
        return self.stream.rehearse(batch)

    def ask(self, op: Op) -> bool:
        """Run ``op`` as the last one; tell whether it can be asked again."""
        answers = self.run(op)
        self.rehearsal.note(op, answers[-1] if answers else None)
        return self.rehearsal.has_question


def test_a_number_that_was_read_is_asked_again_as_it_was_and_answered_as_it_was() -> None:
    on = Rehearsing()
    part = View(SMALL, 8, (), (), "<f8", "")
    for op in (read(NUMBER), Op(".same", 0, (part,), None, Want.CONTENTS)):
        on.ran.clear()
        assert on.ask(op)
        before = on.holds()
        on.rehearsal.hold()
        on.rehearsal.hold()
        assert on.ran == [op, op]
        assert on.holds() == before
        assert not on.rehearsal.is_on


def test_nothing_else_is_asked_again() -> None:
    on = Rehearsing()
    assert not on.rehearsal.has_question
    assert not on.ask(read(LARGE))
    assert not on.ask(read(SMALL))
    assert not on.ask(read(NUMBER, stream=9))
    assert not on.ask(read(99))  # it fails
    assert not on.ask(Op("cupy.ndarray.sum", 5, (Ref(SMALL),)))
    assert not on.ask(Op("cupy.ndarray.sum", 6, (Ref(SMALL),), None, Want.CONTENTS))
    assert not on.ask(Op(".same", 7, (Ref(NUMBER),), None, Want.DESCRIPTION))
    on.rehearsal.hold()
    assert on.ran == []


def test_any_op_behind_it_ends_it() -> None:
    on = Rehearsing()
    for end in (lambda: on.rehearsal.note(Op("cupy.sin", 9, (Ref(NUMBER),)), None), on.rehearsal.forget):
        assert on.ask(read(NUMBER))
        end()
        assert not on.rehearsal.has_question


def test_what_fails_is_not_asked_again() -> None:
    on = Rehearsing()
    assert on.ask(read(NUMBER))
    on.stream.heap.drop(NUMBER)
    on.rehearsal.hold()
    assert not on.rehearsal.has_question


def test_what_breaks_off_leaves_nothing_under_way() -> None:
    def broken(batch: QueuedBatch) -> tuple[int, Answer | None]:
        raise KeyError("a fault of ours")

    rehearsal = Rehearsal(broken)
    rehearsal.note(read(NUMBER), Answer(Buffer(-1, "<f8", (), b"12345678"), is_synchronized=True))
    with pytest.raises(KeyError):
        rehearsal.hold()
    assert not rehearsal.is_on


def test_what_has_not_waited_for_all_before_it_and_what_is_no_mere_number_is_not_asked_again() -> None:
    on = Rehearsing()
    plain = Answer(Buffer(-1, "<f8", (), bytes(8)), is_synchronized=True)
    on.rehearsal.note(read(NUMBER), plain)
    assert on.rehearsal.has_question
    for other in (
        plain._replace(is_synchronized=False), plain._replace(value=Buffer(-1, "|V99", (), bytes(99))),
        plain._replace(value=2.5), plain._replace(value=Buffer(0, "<f8", (), b"")),
    ):  # fmt: skip
        on.rehearsal.note(read(NUMBER), other)
        assert not on.rehearsal.has_question, other


def test_an_error_is_no_answer_to_ask_for_again() -> None:
    on = Rehearsing()
    on.rehearsal.note(read(NUMBER), Answer(error=ErrorRecord("builtins.ValueError", "no")))
    assert not on.rehearsal.has_question


def test_it_is_asked_for_as_long_as_need_be() -> None:
    on = Rehearsing()
    assert on.ask(read(NUMBER))
    for _ in range(5_000):  # far more than a notebook may leave unread
        on.rehearsal.hold()
    assert on.rehearsal.has_question
    assert len(on.ran) == 5_000
