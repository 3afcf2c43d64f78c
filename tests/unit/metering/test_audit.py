"""What is counted is bounded by time, what is hidden is found, and who obeys is never taken for one who does not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_backend.metering.audit import Account, Conduct, Look, by_class

STEP = 0.1
numbers = st.floats(-1e12, 1e12)
shares = st.floats(0, 1)


@given(st.lists(st.tuples(st.floats(0, 5), numbers, st.none() | shares, st.booleans(), st.booleans()), max_size=60))
def test_whatever_is_said_no_more_than_the_time_is_counted_and_nothing_taken_back(
    steps: list[tuple[float, float, float | None, bool, bool]],
) -> None:
    account, passed, counted = Account(), 0.0, 0.0
    for seconds, said, seen, is_idle, is_claiming in steps:
        passed += seconds
        account.pass_time(seconds, is_idle)
        more = account.take(said)
        look = Look(seconds=seconds, seen=None if seen is None else seen * seconds, is_claiming=is_claiming)
        ahead = account.compare(look)
        assert more >= 0
        assert ahead >= 0
        counted += more + ahead
        assert counted <= passed + 1.0 + 1e-6


@given(st.lists(st.tuples(st.floats(0.05, 0.2), shares, shares, st.booleans()), max_size=80))
def test_what_is_hidden_is_counted_but_for_a_second(steps: list[tuple[float, float, float, bool]]) -> None:
    account, seen, counted, reported = Account(), 0.0, 0.0, 0.0
    for seconds, used, said, is_claiming in steps:
        seen += used * seconds
        reported += min(used, said) * seconds
        account.pass_time(seconds, False)
        counted += account.take(reported)
        counted += account.compare(Look(seconds=seconds, seen=used * seconds, is_claiming=is_claiming))
    assert counted >= seen - 1.0 - 1e-6
    assert counted <= seen + 0.15 + 1e-6


@given(st.lists(st.tuples(st.floats(0.05, 0.2), shares, shares), max_size=80), st.integers(1, 30))
def test_who_reports_all_is_counted_what_it_reports_however_late(
    steps: list[tuple[float, float, float]], lateness: int
) -> None:
    """Its ops take long: it says that one runs, and what it took when it is done."""
    account, used, counted = Account(), 0.0, 0.0
    for number, (seconds, part, other) in enumerate(steps, 1):
        used += part * seconds
        account.pass_time(seconds, False)
        is_done = number % lateness == 0 or number == len(steps)
        counted += account.take(used if is_done else account.reported)
        counted += account.compare(
            Look(seconds=seconds, seen=min(1, part + other / 10) * seconds, seen_part=0.5, is_claiming=not is_done)
        )
    assert counted + 1e-6 >= used
    assert counted <= used + 0.2


def test_time_that_nobody_could_have_used_is_not_counted() -> None:
    account = Account()
    for _ in range(600):
        account.pass_time(STEP, True)  # idle for a minute
    assert account.take(60.0) == pytest.approx(1.0)
    account.pass_time(STEP, False)
    assert account.take(3600.0) == pytest.approx(STEP)


def test_what_was_used_before_nobody_counted_may_be_reported_when_somebody_does_again() -> None:
    account = Account(reported=0.1, credit=1.4)
    assert account.take(1.505) == pytest.approx(1.405), "five milliseconds were used before the last one died"


def test_who_claims_a_turn_and_reports_nothing_is_charged_for_it() -> None:
    account, counted = Account(), 0.0
    for _ in range(100):
        account.pass_time(STEP, False)
        counted += account.compare(Look(seconds=STEP, held=STEP / 2))
    assert counted >= 0.5 * 100 * STEP / 2 - 0.15 - 1e-6


def test_who_says_without_end_that_an_op_runs_is_charged_all_that_time() -> None:
    account, counted = Account(), 0.0
    for _ in range(100):
        account.pass_time(STEP, False)
        counted += account.compare(Look(seconds=STEP, seen=0.0, is_claiming=True, claims_on=True))
    assert counted == pytest.approx(100 * STEP - 1.0)


def seconds_to_end(conduct: Conduct, look: Look) -> float:
    """Return for how long it went on."""
    for number in range(1, 1_000):
        if conduct.offence(look):
            return number * look.seconds
    return 0.0


@pytest.mark.parametrize("seen", [0.6, 0.8, 1.0])
def test_who_runs_behind_a_shut_gate_is_ended_within_a_second(seen: float) -> None:
    assert 0.3 <= seconds_to_end(Conduct(), Look(seconds=STEP, seen=seen * STEP)) <= 1.0


def test_who_runs_in_its_turns_and_in_others_is_ended_too() -> None:
    look = Look(seconds=STEP, seen=STEP, open=0.5 * STEP, reported=0.2 * STEP)
    assert 0 < seconds_to_end(Conduct(), look) <= 2.0


def test_what_is_said_to_be_other_work_is_believed_up_to_a_point() -> None:
    look = Look(seconds=STEP, seen=STEP, other=STEP)
    assert 2.0 <= seconds_to_end(Conduct(), look) <= 3.5


INNOCENT = {
    "idle": Look(seconds=STEP, seen=0.04 * STEP),
    "in its turns": Look(seconds=STEP, seen=0.6 * STEP, open=0.7 * STEP),
    "an op that runs on for minutes": Look(seconds=STEP, seen=STEP, is_claiming=True, claims_on=True),
    "what was in flight": Look(seconds=STEP, seen=STEP, reported=STEP),
    "not seen": Look(seconds=STEP),
}


@pytest.mark.parametrize("name", INNOCENT)
def test_who_obeys_is_not_ended(name: str) -> None:
    assert seconds_to_end(Conduct(), INNOCENT[name]) == 0


def test_a_burst_of_messages_behind_a_shut_gate_is_no_offence() -> None:
    conduct = Conduct()
    for _ in range(5):
        for _ in range(15):  # a notebook's whole credit
            assert not conduct.offence(Look(seconds=STEP, seen=STEP, other=0.99 * STEP))
        for _ in range(400):
            assert not conduct.offence(Look(seconds=STEP, seen=0.0))


def test_one_op_may_overrun_as_long_as_the_operator_lets_it() -> None:
    running = Look(seconds=STEP, seen=STEP, is_claiming=True, claims_on=True)
    assert seconds_to_end(Conduct(most_overrun=5.0), running) == pytest.approx(5.1, abs=0.11)
    conduct = Conduct(most_overrun=5.0)
    for _ in range(20):  # many, one after the other
        for _ in range(40):
            assert not conduct.offence(running)
        done = Look(seconds=STEP, seen=STEP, is_claiming=True, claims_on=True, has_progress=True)
        assert not conduct.offence(done)


@given(st.floats(0, 1e6), st.lists(numbers, min_size=6, max_size=6))
def test_classes_sum_to_what_was_counted(total: float, claimed: list[float]) -> None:
    parts = by_class(total, claimed)
    assert all(part >= 0 for part in parts)
    assert sum(parts) == pytest.approx(total, rel=1e-6, abs=1e-9)
