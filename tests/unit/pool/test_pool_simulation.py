"""The pool in virtual time: what the ledger and placement are for shows, and the figures are those of the model."""

from __future__ import annotations

import pytest

from gpu_backend.arbiter.policies import registry
from gpu_backend.arbiter.simulation.device import SimulatedDevice
from gpu_backend.arbiter.simulation.trace import Cell, Script, coming_and_going
from gpu_backend.gate.terms import SessionTerms
from gpu_backend.pool import simulate
from gpu_backend.pool.simulation import SimulatedPool


def hogs(user: str, count: int) -> list[Script]:
    cell = Cell(0.0, 1_000_000, 1e-3)
    return [Script(SessionTerms(session=f"{user}{n}", user=user), 0, (cell,)) for n in range(count)]


def mean_error(scripts: list[Script], rule: str, has_ledger: bool) -> float:
    errors = SimulatedPool(scripts, 2, (rule,), has_ledger).run(120).share_errors
    return sum(errors) / len(errors)


def test_badly_placed_notebooks_come_out_even_with_the_ledger_and_not_without() -> None:
    # One user's four fill a device by load before the others come, who then share the other with two more.
    scripts = [*hogs("six", 5), *hogs("two", 1), *hogs("three", 2)]
    assert mean_error(scripts, "spread", has_ledger=True) < 0.03
    assert mean_error(scripts, "spread", has_ledger=False) > 2 * mean_error(scripts, "spread", has_ledger=True)


def test_a_second_of_a_device_is_given_once_and_none_is_lost() -> None:
    outcome = SimulatedPool([*hogs("a", 3), *hogs("b", 2)], 2, ("spread",)).run(60)
    assert outcome.used_seconds == pytest.approx(outcome.wanted_seconds) == pytest.approx(120.0)


def test_the_same_seed_leads_to_the_same_figures() -> None:
    scripts = coming_and_going(60, 120.0, 3).scripts
    first, again = (SimulatedPool(scripts, 5, ("spread",)).run(120) for _ in range(2))
    assert first == again
    assert first.slowdowns
    assert min(first.slowdowns) >= 1


#: Of 300 users on 12 devices for 240 s, as they were when every device was asked and numbered anew: how many errors of
#: shares and their sum, the sums of slowdowns and of waits for a place, who had none, and device seconds used.
FIGURES = {
    "spread": (291, 10.352740383739004, 99.73225097627525, 1694.3534848652705, 302, 1265.8886246377465),
    "interference": (244, 7.422883875518924, 96.86205687122232, 1799.900083188862, 307, 1159.9985359585587),
    "best_fit": (258, 8.027896046843836, 88.14220773621588, 1692.1598265677933, 308, 957.299786214225),
    "near": (290, 10.470579517806147, 99.85229685087884, 1784.385658833693, 305, 1181.6139360455322),
}


@pytest.mark.parametrize("rule", FIGURES)
def test_what_makes_it_quicker_changes_no_figure(rule: str) -> None:
    pool, _ = simulate.simulate(simulate.Wanted(rule, True, 300, 12, 16, 240, 5, 1))
    errors, waited = (len(pool.share_errors), sum(pool.share_errors)), (sum(pool.slowdowns), sum(pool.queued))
    assert (*errors, *waited, pool.unplaced, pool.used_seconds) == pytest.approx(FIGURES[rule], rel=1e-9)


def test_weights_that_change_are_played_in_turns() -> None:
    scripts = (*hogs("a", 1), *hogs("b", 1))
    changes = [(10.0, SessionTerms(session="a0", user="a", user_weight=0.25))]
    device = SimulatedDevice(registry.make("fair_share"), scripts, changes=changes)
    device.run(10.0)
    assert device.scheduler.used_by_user["a"] == pytest.approx(5.0, abs=0.1)
    changed = SimulatedDevice(registry.make("fair_share"), scripts, changes=changes)
    changed.run(30.0)
    assert changed.scheduler.used_by_user["a"] == pytest.approx(5.0 + 4.0, abs=0.2)


def visitor(user: str, start: float, gib: int = 0, seconds: float = 4.0) -> Script:
    return Script(SessionTerms(session=user, user=user), 0, (Cell(0.0, 1, seconds),), start, gib << 30)


def test_who_finds_no_place_waits_for_one_and_gets_it_when_somebody_leaves() -> None:
    scripts = [visitor("a", 0.0), visitor("b", 1.0), visitor("c", 2.0, seconds=50.0)]
    outcome = SimulatedPool(scripts, 1, ("spread",), places=1).run(30)
    assert outcome.queued == [0.0, 3.0, 6.0]  # each is gone at the end of the fourth second, and the next one is placed
    assert (outcome.unplaced, outcome.most_waiting, outcome.most_placed) == (0, 2, 1)
    assert SimulatedPool([*scripts, visitor("d", 3.0)], 1, ("spread",), places=1).run(30).unplaced == 1


def test_memory_is_promised_once() -> None:
    scripts = [visitor("a", 0.0, 50), visitor("b", 0.0, 50), visitor("c", 0.0, 30)]
    pool = SimulatedPool(scripts, 1, ("spread",), places=3)
    assert sorted(pool.run(12).queued) == [0.0, 4.0, 4.0]  # who waits for much is not passed by who needs little


def test_turns_begin_when_a_session_has_its_place() -> None:
    pool = SimulatedPool([visitor("a", 0.0), visitor("b", 1.0)], 1, ("spread",), places=1, watched=(0,))
    pool.run(20)
    assert [script.start_seconds for script in pool.scripts_on(0)] == [0.0, 4.0]


def test_best_fit_leaves_room_for_large_sessions_and_spread_does_not() -> None:
    small = [visitor(f"s{n}", 0.0, 4, seconds=100.0) for n in range(10)]
    queued = {
        rule: SimulatedPool([*small, visitor("large", 1.0, 80)], 2, (rule,)).run(20).unplaced
        for rule in ("spread", "best_fit")
    }
    assert queued == {"spread": 1, "best_fit": 0}


def test_the_command_compares_rules(capsys: pytest.CaptureFixture[str]) -> None:
    few = ["--users", "20", "--devices", "2", "--seconds", "30", "--sample", "1", "--jobs", "1", "--beside"]
    assert simulate.main(["spread", "best_fit", *few]) == 0
    shown = capsys.readouterr().out
    assert "20 users on 2 devices" in shown
    assert simulate.main(["fastest"]) == 2
    assert "no rule of placement 'fastest'" in capsys.readouterr().err
