"""Policies keep their own promises in virtual time; the figures are what they say they are."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from gpu_backend.arbiter import simulate
from gpu_backend.arbiter.events import Reported, SessionJoined, TermsChanged
from gpu_backend.arbiter.policies import registry
from gpu_backend.arbiter.policies._production import Report
from gpu_backend.arbiter.policies.base import SharingPolicy
from gpu_backend.arbiter.policies.paella import Paella
from gpu_backend.arbiter.policies.tgs import RateControl
from gpu_backend.arbiter.scheduler import Scheduler
from gpu_backend.arbiter.simulation.device import SimulatedDevice
from gpu_backend.arbiter.simulation.outcome import Outcome, quantile
from gpu_backend.arbiter.simulation.trace import Cell, Script, read, synthetic
from gpu_backend.gate.terms import SessionClass, SessionTerms

ENDLESS = 10**9


def hog(session: str, user: str = "", op_seconds: float = 0.001, **terms: object) -> Script:
    own = SessionTerms(session=session, user=user or session, **terms)  # type: ignore[arg-type]
    return Script(own, 0, (Cell(0.0, ENDLESS, op_seconds),))


def interactive(session: str, pause: float = 0.0237, cells: int = 2_000, **terms: object) -> Script:
    own = SessionTerms(session=session, user=session, **terms)  # type: ignore[arg-type]
    return Script(own, 0, (Cell(pause, 1, 1e-4),) * cells)


def run(policy: SharingPolicy | str, *scripts: Script, seconds: float = 20.0) -> tuple[dict[str, float], Outcome]:
    """Return each user's part of the time, and the figures."""
    made = registry.make(policy) if isinstance(policy, str) else policy
    device = SimulatedDevice(made, scripts)
    outcome = device.run(seconds)
    device.scheduler.validate()
    return {user: used / seconds for user, used in device.scheduler.used_by_user.items()}, outcome


def test_fair_share_is_by_user_not_by_notebook() -> None:
    scripts = [
        hog(f"u{user}.{number}", f"u{user}", op)
        for user, (count, op) in enumerate([(1, 1e-5), (2, 1e-3), (3, 1e-2), (6, 0.1)])
        for number in range(count)
    ]
    parts, outcome = run("fair_share", *scripts, seconds=60.0)
    assert parts == pytest.approx(dict.fromkeys(parts, 0.25), rel=0.02)
    assert outcome.utilisation > 0.999
    by_process, _ = run("driver", *scripts)
    assert by_process["u3"] == pytest.approx(6 * by_process["u0"], rel=0.01)


def test_fair_share_keeps_weights_of_users_and_of_groups() -> None:
    parts, outcome = run("fair_share", *[hog(f"u{w}", user_weight=w) for w in (1, 2, 4)])
    assert parts == pytest.approx({"u1": 1 / 7, "u2": 2 / 7, "u4": 4 / 7}, rel=0.02)
    assert quantile(outcome.share_errors, 0.99) < 0.05
    scripts = [hog("a", group="small"), *[hog(f"b{n}", group="large", group_weight=3.0) for n in range(3)]]
    parts, _ = run("fair_share", *scripts)
    assert parts == pytest.approx(dict.fromkeys(parts, 0.25), rel=0.02)


def test_fair_share_serves_a_short_cell_behind_what_is_in_flight() -> None:
    hogs = [hog(f"hog{n}", op_seconds=2e-4) for n in range(3)]
    _, outcome = run("fair_share", *hogs, interactive("person"))
    assert quantile(outcome.delays, 0.99) <= 0.0015


def test_fair_share_asks_no_price_for_time_that_nobody_wanted() -> None:
    """A user who had the device alone for long is not held back when another comes, nor the other."""
    late = Script(SessionTerms(session="late", user="late"), 0, (Cell(30.0, ENDLESS, 1e-3),))
    parts, outcome = run("fair_share", hog("early"), late, seconds=40.0)
    assert parts["late"] == pytest.approx(5 / 40, rel=0.02)
    assert max(outcome.share_errors) < 0.02


@pytest.mark.parametrize("name", ["gemini", "kubeshare"])
def test_requests_are_kept_by_the_token(name: str) -> None:
    parts, _ = run(name, *[hog(f"r{r}", request=r / 10) for r in (5, 3, 2)], seconds=60.0)
    assert parts == pytest.approx({"r5": 0.5, "r3": 0.3, "r2": 0.2}, abs=0.02)


def test_the_token_keeps_limits_and_idles_for_them() -> None:
    parts, outcome = run("gemini", hog("a", limit=0.4), hog("b", request=0.2, limit=0.3), seconds=60.0)
    assert parts == pytest.approx({"a": 0.4, "b": 0.3}, abs=0.03)
    assert outcome.utilisation < 0.75


@pytest.mark.parametrize("points", [10, 30, 50, 80])
def test_gaiagpu_converges_to_its_target(points: int) -> None:
    part = points / 100
    other = hog("other", request=(1 - part) / 2, limit=(1 - part) / 2)
    parts, _ = run("gaiagpu", hog("it", request=part, limit=part), other, seconds=60.0)
    assert parts["it"] == pytest.approx(part, abs=0.05)


def test_gaiagpu_grows_into_what_is_idle() -> None:
    parts, _ = run("gaiagpu", hog("it", request=0.3, limit=0.9), interactive("idle", 1.0, request=0.3), seconds=120.0)
    assert parts["it"] > 0.5


def test_gaiagpu_follows_terms_that_change() -> None:
    policy = registry.make("gaiagpu")
    device = SimulatedDevice(policy, (hog("it"), hog("other")))
    for session, part in (("it", 0.3), ("other", 0.2)):
        device.scheduler.handle(
            TermsChanged(SessionTerms(session=session, user=session, request=part, limit=part)), 0.0
        )
    device.run(60.0)
    assert device.scheduler.used_by_user["it"] / 60 == pytest.approx(0.3, abs=0.05)


@pytest.mark.parametrize("name", ["tgs", "antman"])
def test_production_need_not_ask(name: str) -> None:
    """Its gate stands open while it is idle, so that it loses nothing when it comes back."""
    scheduler = Scheduler(registry.make(name))
    for session, kind in (("p", SessionClass.PRODUCTION), ("o", SessionClass.BEST_EFFORT)):
        scheduler.handle(SessionJoined(SessionTerms(session=session, user=session, kind=kind)), 0.0)
    assert scheduler.is_open("p")
    assert not scheduler.is_open("o")
    scheduler.handle(Reported("p", 0.0, 0, 5), 1.0)
    scheduler.handle(Reported("p", 0.1, 5, 0), 1.1)
    assert scheduler.is_open("p")
    scheduler.validate()


def test_tgs_spares_production_and_uses_what_it_leaves() -> None:
    production = SessionTerms(session="p", user="p", kind=SessionClass.PRODUCTION)
    half = Script(production, 0, (Cell(0.005, 5, 1e-3),) * 20_000)
    alone, _ = run("tgs", half)
    parts, outcome = run("tgs", half, hog("o", op_seconds=1e-4), seconds=40.0)
    by_driver, _ = run("driver", half, hog("o", op_seconds=1e-4))
    assert parts["p"] >= 0.95 * alone["p"]
    assert parts["p"] > by_driver["p"]
    assert parts["o"] > 0.02
    assert outcome.useful_seconds / outcome.total_seconds > alone["p"]


def test_tgs_in_a_fluid_model_finds_what_production_leaves() -> None:
    control, capacity, demand = RateControl(), 1.0, 0.5
    lost, taken = [], []

    def second(wanted: float, rate: float) -> None:
        control.report(Report(200 * rate, rate, wanted))

    for _ in range(400):
        wanted = min(control.limit, 1.0)
        rate = min(demand, max(capacity - wanted, 0.0))
        second(wanted, rate)
        lost.append(1 - rate / demand)
        taken.append(wanted)
    assert sum(lost[100:]) / 300 <= 0.05
    assert sum(taken[100:]) / 300 >= 0.8 * (capacity - demand)
    for _ in range(10):
        second(1.0, 0.0)
    assert control.limit > 1e9
    for _ in range(30):  # it starts again against the driver's halves
        wanted = min(control.limit, 1.0)
        second(wanted, min(demand, max(capacity - wanted, 0.4)))
    assert min(demand, capacity - control.limit) >= 0.95 * demand


def test_antman_gives_way_to_production_that_is_always_busy() -> None:
    parts, _ = run("antman", hog("p", kind=SessionClass.PRODUCTION), hog("o"), seconds=120.0)
    assert parts["p"] > 0.9


def test_antman_lets_others_use_productions_pauses() -> None:
    production = SessionTerms(session="p", user="p", kind=SessionClass.PRODUCTION)
    now_and_then = Script(production, 0, (Cell(0.5, 50, 1e-3),) * 1_000)
    alone, _ = run("antman", now_and_then, seconds=60.0)
    parts, _ = run("antman", now_and_then, hog("o"), seconds=60.0)
    assert parts["p"] > 0.9 * alone["p"]
    assert parts["o"] > 0.05


def test_reef_lets_priority_work_wait_for_two_ops_at_most() -> None:
    best_effort = [hog(f"b{n}", op_seconds=0.002, kind=SessionClass.BEST_EFFORT) for n in range(3)]
    parts, outcome = run("reef", *best_effort, interactive("person"))
    assert max(outcome.delays) <= 2 * 0.002 + 1e-6
    assert parts["b0"] == pytest.approx(parts["b2"], rel=0.05)


def test_paella_prefers_what_ends_soon_and_bounds_who_is_passed_over() -> None:
    cells = (Cell(0.02, 50, 1e-4),) * 2_000
    short = Script(SessionTerms(session="short", user="short"), 0, cells)
    policy = Paella(threshold=3.0)
    parts, outcome = run(policy, hog("long"), short)
    assert quantile(outcome.delays, 0.99) <= 3 * 0.005
    assert parts["long"] > 0.3
    assert max(policy.deficits.values()) <= 4.0


def test_fifo_lets_one_hold_the_others_back() -> None:
    parts, _ = run("fifo", hog("first"), hog("second"), seconds=15.0)
    assert parts["first"] > 0.99


def test_a_trace_is_made_from_its_seed_and_survives_a_file(tmp_path: Path) -> None:
    trace = synthetic(20, 3, 60.0, seed=5)
    assert trace == synthetic(20, 3, 60.0, seed=5) != synthetic(20, 3, 60.0, seed=6)
    assert trace.devices == 3
    path = tmp_path / "trace.json"
    path.write_bytes(msgspec.json.encode(trace))
    assert read(path) == trace


def test_several_processes_find_the_same() -> None:
    trace = synthetic(9, 3, 20.0, seed=2)
    assert simulate.simulate(trace, ["fair_share", "tgs"], jobs=2) == simulate.simulate(trace, ["fair_share", "tgs"])


def test_the_command_prints_a_table_and_saves_a_plot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plot = tmp_path / "plot.png"
    options = ["--users", "8", "--devices", "2", "--seconds", "30", "--jobs", "1", "--plot", str(plot)]
    assert simulate.main(["fair_share", "driver", *options]) == 0
    assert plot.read_bytes().startswith(b"\x89PNG")
    shown = capsys.readouterr().out
    assert "driver" in shown
    assert "on 2 devices" in shown


def test_the_command_names_the_policies_that_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert simulate.main(["fairest"]) == 2
    assert "fair_share" in capsys.readouterr().err
