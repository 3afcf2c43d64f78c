"""The journal and its marks under every order of events: nothing is lost that may be asked for, and marks only grow."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from gpu_backend.opstream.entry import Entry
from gpu_backend.opstream.journal import Journal
from gpu_backend.opstream.marks import Marks
from gpu_backend.wire.errors import ProtocolError
from gpu_backend.wire.messages import Op

MOST_OPS = 40


def entry(first: int, count: int) -> Entry:
    made = Entry(first)
    made.ops = [Op("op", 0, (first + place,)) for place in range(count)]
    return made


def in_order(marks: Marks) -> tuple[int, ...]:
    return (marks.durable, marks.done, marks.applied, marks.taken, marks.sent, marks.recorded)


class JournalMachine(RuleBasedStateMachine):
    """Who records, who sends, an executor, a network that loses connections, and something that makes ops durable."""

    @initialize(most_bytes=st.sampled_from([50, 1 << 20]))
    def begin(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self.journal: Journal[Entry] = Journal(MOST_OPS, most_bytes)
        self.before = in_order(self.journal.marks)
        #: What the executor has: it is never told the same op twice, and never misses one.
        self.arrived: list[int] = []

    @rule(count=st.integers(1, 9))
    def record(self, count: int) -> None:
        made = entry(self.journal.marks.recorded + 1, count)
        self.journal.append(made)
        self.journal.append(made)  # as after an interrupt

    @rule(data=st.data(), size=st.integers(1, 30))
    def send(self, data: st.DataObject, size: int) -> None:
        found = self.journal.next_unsent()
        if found is None:
            assert self.journal.cursor == self.journal.marks.recorded
            return
        assert found.first <= self.journal.cursor + 1 <= found.last
        self.journal.note_sending(found)
        fate = data.draw(st.sampled_from(["arrives", "is lost", "arrives, and an interrupt strikes"]))
        if fate != "is lost":
            numbers = [number for number in range(found.first, found.last + 1) if number > self.journal.marks.taken]
            self.arrived += [number for number in numbers if not self.arrived or number > self.arrived[-1]]
        if fate != "arrives, and an interrupt strikes":
            self.journal.note_sent(found, size)
        if fate == "is lost":
            self.reconnect()

    @rule()
    def reconnect(self) -> None:
        taken = self.arrived[-1] if self.arrived else self.journal.marks.taken
        self.journal.resume(taken)
        assert self.journal.cursor == self.journal.marks.taken == taken

    @precondition(lambda self: self.arrived)
    @rule(data=st.data())
    def executor_goes_on(self, data: st.DataObject) -> None:
        applied = data.draw(st.integers(0, self.arrived[-1]))
        self.journal.note_progress(applied, data.draw(st.integers(0, applied)))

    @rule(data=st.data())
    def make_durable(self, data: st.DataObject) -> None:
        self.journal.note_durable(data.draw(st.integers(0, self.journal.marks.done)))

    @rule()
    def executor_dies(self) -> None:
        self.journal.clear()
        self.arrived.clear()
        assert len(set(in_order(self.journal.marks))) == 1
        assert self.journal.held() == []

    @invariant()
    def marks_are_in_order_and_only_grow(self) -> None:
        now = in_order(self.journal.marks)
        assert list(now) == sorted(now)
        assert all(new >= old for new, old in zip(now, self.before, strict=True))
        self.before = now

    @invariant()
    def the_executor_hears_of_each_op_once(self) -> None:
        assert all(new == old + 1 for old, new in zip(self.arrived, self.arrived[1:], strict=False))

    @invariant()
    def all_is_held_that_is_not_durable_but_what_was_let_go_at_the_bound(self) -> None:
        journal, marks, held = self.journal, self.journal.marks, self.journal.held()
        numbers = [number for one in held for number in range(one.first, one.last + 1)]
        assert numbers == list(range(marks.recorded + 1 - len(numbers), marks.recorded + 1))
        assert all(one.last > marks.durable for one in held)
        assert marks.recorded - len(numbers) <= marks.done, "what is not done is always held"
        if journal.is_whole:
            assert marks.recorded - len(numbers) <= marks.durable
        kept = [one for one in held if one.last <= marks.done]
        assert sum(len(one.ops) for one in kept) <= MOST_OPS
        assert sum(one.size for one in kept) <= self.most_bytes

    @invariant()
    def what_waits_is_what_is_not_carried_out(self) -> None:
        waiting = [one.first + place for one, place in self.journal.waiting()]
        assert waiting == list(range(self.journal.marks.applied + 1, self.journal.marks.recorded + 1))


TestJournalMachine = JournalMachine.TestCase
TestJournalMachine.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)


def sent(*counts: int, size: int = 1) -> Journal[Entry]:
    """Return a journal with entries of so many ops, all of them sent."""
    journal: Journal[Entry] = Journal(MOST_OPS, 100)
    for count in counts:
        journal.append(made := entry(journal.marks.recorded + 1, count))
        journal.note_sending(made)
        journal.note_sent(made, size)
    return journal


def test_what_is_done_is_kept_until_it_is_durable() -> None:
    journal = sent(3, 3, 3)
    journal.note_progress(9, 7)
    assert [one.first for one in journal.held()] == [1, 4, 7]
    journal.note_durable(5)
    assert [one.first for one in journal.held()] == [4, 7]
    assert journal.is_whole


@pytest.mark.parametrize(("counts", "size"), [((30, 30), 1), ((1, 1), 60)])
def test_at_the_bound_the_oldest_are_let_go_and_that_is_said(counts: tuple[int, ...], size: int) -> None:
    journal = sent(*counts, size=size)
    assert len(journal.held()) == 2, "what is not done is not bounded here"
    last = journal.marks.recorded
    journal.note_progress(last, last)
    assert [one.last for one in journal.held()] == [last]
    assert not journal.is_whole
    journal.note_durable(last)
    assert journal.is_whole


def test_what_was_never_sent_cannot_be_done() -> None:
    journal = sent(3)
    journal.append(entry(4, 3))
    for say in (lambda: journal.note_progress(4, 0), lambda: journal.note_progress(0, 4), lambda: journal.resume(4)):
        with pytest.raises(ProtocolError, match="speaks of op 4, and op 3 is the last that was sent"):
            say()
    assert in_order(journal.marks) == (0, 0, 0, 0, 3, 6)


def test_an_executor_cannot_have_lost_what_it_had() -> None:
    journal = sent(3, 3)
    journal.note_progress(5, 5)
    with pytest.raises(ProtocolError, match="had taken 5, and now 3"):
        journal.resume(3)


def test_marks_of_ones_own_do_not_pass_each_other() -> None:
    journal = sent(3)
    with pytest.raises(ValueError, match="3 are recorded"):
        journal.marks.note_sent(4)
    with pytest.raises(ValueError, match="0 are done"):
        journal.note_durable(1)


def test_what_lies_in_memory_of_others_is_copied_once() -> None:
    journal = sent(1, 1)
    theirs = bytearray(b"theirs")
    done, waits = journal.held()
    done.frames, waits.frames = [memoryview(theirs), ours := b"ours"], [memoryview(theirs)[2:]]
    journal.note_progress(1, 1)
    journal.own()
    theirs[:] = b"change"
    assert (done.frames, waits.frames) == ([b"theirs", ours], [b"eirs"])
    assert done.frames[1] is ours
    copied = waits.frames[0]
    journal.own()
    assert waits.frames[0] is copied
