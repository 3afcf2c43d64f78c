"""Shares over the pool, in played time: devices that divide by weights, and the ledger that sets these."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_backend.gateway.filling import Vessel
from gpu_backend.gateway.pool_shares import PoolShares, capacity, demand
from gpu_backend.gateway.seats import Seat
from tests.unit.gateway.dividing import Claim, fair_totals


@dataclass
class Notebook:
    """Wants ``busy`` of a device's time where it has one alone; the rest it thinks, however long it is kept waiting."""

    name: str
    user: str
    device: Vessel
    weight: float = 1.0
    group: str = ""
    busy: float = 1.0
    says_wanted: float | None = None
    #: What part of the time in which it has its turns it waits for its user.
    waits: float = 0.0
    used: float = 0.0
    wanted: float = 0.0


@dataclass
class Played:
    """Devices in steps of a second: each divides it among those who want it by the weights that it was told."""

    notebooks: list[Notebook]
    ledger: PoolShares = field(default_factory=PoolShares)
    now: float = 100.0
    is_ledger_up: bool = True
    unsteered: frozenset[Vessel] = frozenset()
    gives: dict[Vessel, float] = field(default_factory=dict)
    unused: defaultdict[Vessel, float] = field(default_factory=lambda: defaultdict(float))
    told: dict[str, float] = field(default_factory=dict)

    def run(self, seconds: int) -> Counter[str]:
        """Let time pass; return what each user had of it."""
        had: Counter[str] = Counter()
        for _ in range(seconds):
            self.now += 1.0
            for device in sorted({one.device for one in self.notebooks}):
                for one, part in self._divide([one for one in self.notebooks if one.device == device]):
                    waited, wanted = part * one.waits, part
                    part *= self.gives.get(device, 1.0)
                    self.unused[device] += wanted - part
                    one.used += part
                    # Who thinks for t behind each second of work wants the device in all the rest.
                    think = (1 - one.busy) / one.busy
                    one.wanted += max(part, 1 - waited - part * think) if one.says_wanted is None else one.says_wanted
                    had[one.user] += part
            if self.is_ledger_up:
                self._settle()
        return had

    def _settle(self) -> None:
        for device in sorted({one.device for one in self.notebooks} | self.ledger.devices):
            there = [one for one in self.notebooks if one.device == device]
            self.ledger.hear(
                device, [Seat(one.name, one.user, one.group, one.weight) for one in there],
                [(one.used, one.wanted, self.unused[device], self.now) for one in there],
                device not in self.unsteered,
            )  # fmt: skip
        self.ledger.settle()
        for one in self.notebooks:
            weights = self.ledger.weights(one.device, one.user, one.group)
            self.told[one.name] = one.weight * weights.user
            assert 0 < weights.user <= 1
            assert 0 < weights.group <= 1

    def _divide(self, here: list[Notebook]) -> list[tuple[Notebook, float]]:
        """Fair sharing by weights among users, equally among a user's notebooks; nobody beyond what they want."""
        parts = dict.fromkeys((one.name for one in here), 0.0)
        open_ones, left = list(here), 1.0
        while open_ones and left > 1e-9:
            users = {one.user: self.told.get(one.name, one.weight) for one in open_ones}
            count = Counter(one.user for one in open_ones)
            shares = {one.name: left * users[one.user] / sum(users.values()) / count[one.user] for one in open_ones}
            full = [one for one in open_ones if parts[one.name] + shares[one.name] >= one.busy]
            for one in full or open_ones:
                more = min(shares[one.name], one.busy - parts[one.name])
                parts[one.name] += more
                left -= more
            open_ones = [one for one in open_ones if one not in full] if full else []
        return [(one, parts[one.name]) for one in here]


def fair(notebooks: list[Notebook]) -> dict[str, float]:
    """Return the max-min fair part of each user, by what their notebooks really want."""
    weights = {one.user: one.weight for one in notebooks}
    demands: dict[Vessel, dict[str, Claim]] = {}
    for one in notebooks:
        there = demands.setdefault(one.device, {})
        before = there[one.user].demand if one.user in there else 0.0
        there[one.user] = Claim(weights[one.user], min(1.0, before + one.busy))
    return fair_totals(demands)


def placed(user: str, *devices: int, **changes: object) -> list[Notebook]:
    return [
        Notebook(f"{user}{number}", user, ("n", device), **changes)  # type: ignore[arg-type]
        for number, device in enumerate(devices)
    ]


@st.composite
def pools(draw: st.DrawFn) -> list[Notebook]:
    devices = draw(st.integers(1, 4))
    notebooks: list[Notebook] = []
    for user in "abcde"[: draw(st.integers(2, 5))]:
        weight = draw(st.sampled_from([1.0, 1.0, 2.0]))
        where = draw(st.lists(st.integers(0, devices - 1), min_size=1, max_size=6))
        notebooks += placed(user, *where, weight=weight)
    return notebooks


def test_six_notebooks_beside_two_had_three_times_as_much_and_come_out_even() -> None:
    """Two devices: all four of one user's on the first, two of each on the second."""
    notebooks = [*placed("six", 0, 0, 0, 0, 1, 1), *placed("two", 1, 1)]
    alone = Played(list(notebooks), is_ledger_up=False)
    assert alone.run(5) == pytest.approx({"six": 7.5, "two": 2.5})
    pool = Played(notebooks)
    pool.run(10)
    had = pool.run(5)
    assert had["six"] == pytest.approx(5.0, rel=0.02)
    assert had["two"] == pytest.approx(5.0, rel=0.02)


@settings(deadline=None, max_examples=60)
@given(pools())
def test_every_share_comes_within_two_hundredths_of_a_device_of_the_fair_one(notebooks: list[Notebook]) -> None:
    pool = Played(notebooks)
    pool.run(25)
    before = {one.name: one.used for one in notebooks}
    had, wanted = pool.run(5), fair(notebooks)
    for user, part in wanted.items():
        assert had[user] / 5 == pytest.approx(part, abs=0.02 * max(1.0, part)), wanted
    for device in {one.device for one in notebooks}:  # no device stands idle for it
        assert sum(one.used - before[one.name] for one in notebooks if one.device == device) == pytest.approx(5.0)
    for one in notebooks:  # and nobody starves
        assert one.used > before[one.name]


@pytest.mark.parametrize(("first", "second"), [(0.8, 1.0), (0.8, 0.9), (1.0, 0.8)])
def test_what_a_device_cannot_give_is_had_from_another(first: float, second: float) -> None:
    """Where turns change often, or all wait for their notebooks, nobody has the whole of it."""
    notebooks = [*placed("six", 0, 0, 0, 0, 1, 1), *placed("two", 1, 1)]
    pool = Played(notebooks, gives={("n", 0): first, ("n", 1): second})
    pool.run(10)
    had = pool.run(10)
    if first <= second:
        assert had["six"] == pytest.approx(had["two"], rel=0.02)
    else:  # six has the first to themselves, and two cannot be there
        assert had["two"] == pytest.approx(10 * second, rel=0.02)


def test_what_is_left_of_a_device_while_each_waits_for_their_notebook_in_turn_is_not_there() -> None:
    """As on two GPUs: somebody always wants the device, though none of them always does, and it gives two thirds."""
    notebooks = [*placed("six", 0, 0, 0, 0, 1, 1, waits=0.25), *placed("two", 1, 1, waits=0.25)]
    pool = Played(notebooks, gives={("n", 0): 0.63, ("n", 1): 0.73})
    pool.run(15)
    had = pool.run(10)
    assert had["six"] == pytest.approx(had["two"], rel=0.005)


def test_who_leaves_takes_nothing_of_a_device_along() -> None:
    """What is unused of it is of all who were there: so is not what those use who are there now, for some seconds."""
    courses = []
    for unused in (0.03, 0.0):
        by_turns = [*placed("y", 0, 1, waits=1.0), *placed("n", 0, waits=1.0)]
        pool = Played([*by_turns, *placed("z", 1)], gives={("n", 0): 1 - unused})
        pool.run(15)
        pool.notebooks = [one for one in pool.notebooks if one.user != "n"]
        course = []
        for _ in range(6):
            pool.run(1)
            course.append(pool.told["y1"])
        courses.append(course)
    assert courses[0] == pytest.approx(courses[1], abs=0.05)


@settings(deadline=None, max_examples=40)
@given(pools(), pools())
def test_who_comes_and_goes_is_followed_with_a_bounded_error(first: list[Notebook], then: list[Notebook]) -> None:
    pool = Played(first)
    pool.run(15)
    pool.notebooks = [Notebook(f"{one.name}'", one.user, one.device, one.weight) for one in then]
    had, wanted = pool.run(30), fair(pool.notebooks)
    for user, part in wanted.items():
        # What is had wrongly until it is seen: some seconds of the devices that they are on.
        devices = len({one.device for one in pool.notebooks if one.user == user})
        assert abs(had[user] - 30 * part) <= 6 * devices + 0.02 * 30


def test_while_the_ledger_is_away_the_last_weights_hold_and_nothing_is_lost() -> None:
    pool = Played([*placed("six", 0, 0, 0, 0, 1, 1), *placed("two", 1, 1)])
    pool.run(10)
    pool.is_ledger_up = False
    assert pool.run(60) == pytest.approx({"six": 60, "two": 60}, rel=0.02)
    pool.notebooks = placed("six", 1)  # nobody else wants it: a small weight is no limit
    assert pool.run(10) == pytest.approx({"six": 10})
    pool.ledger, pool.is_ledger_up = PoolShares(), True  # one that knows nothing
    pool.notebooks = [*placed("six", 0, 1), *placed("two", 1)]
    pool.run(10)
    assert pool.run(10) == pytest.approx({"six": 10, "two": 10}, rel=0.02)


def test_a_device_that_is_drained_counts_no_more() -> None:
    pool = Played([*placed("six", 0, 1), *placed("two", 1)])
    pool.run(10)
    pool.notebooks = [one for one in pool.notebooks if one.device == ("n", 1)]
    pool.ledger.forget([("n", 0)])
    pool.run(10)
    assert pool.run(10) == pytest.approx({"six": 5, "two": 5}, rel=0.02)


def test_weights_are_of_the_pool_too() -> None:
    pool = Played([*placed("one", 0, 1), *placed("three", 0, 1, weight=3.0), *placed("more", 1)])
    pool.run(20)
    had = pool.run(10)
    assert had["three"] == pytest.approx(3 * had["one"], rel=0.03)
    assert had["more"] == pytest.approx(had["one"], rel=0.03)


def test_what_is_used_under_another_policy_counts_and_is_made_up_for_elsewhere() -> None:
    pool = Played([*placed("a", 0, 1), *placed("b", 1)], unsteered=frozenset({("n", 0)}))
    pool.run(10)
    had = pool.run(10)
    assert had == pytest.approx({"a": 10, "b": 10}, rel=0.02)
    assert pool.told["a0"] == 1.0  # its own device is left alone


def test_groups_divide_the_pool_before_their_users_do() -> None:
    ledger, group = PoolShares(), {"a": "lab", "b": "lab", "x": "solo"}
    for second in range(1, 12):
        for number, names in enumerate((("a", "b", "x"), ("x",))):
            seats = [Seat(f"{name}{number}", name, group[name]) for name in names]
            ledger.hear(("n", number), seats, [(second / len(names), second, 0.0, second)] * len(names))
        ledger.settle()
    # The second device is the solo group's alone, so the first is the lab's: half of it for each of its users.
    assert ledger.weights(("n", 0), "x", "solo").group < 0.02
    assert ledger.weights(("n", 0), "a", "lab") == ledger.weights(("n", 0), "b", "lab") == (1.0, 1.0)
    assert [ledger.fair(user, "lab") for user in "ab"] == pytest.approx([0.5, 0.5], abs=0.01)


def test_who_wants_little_keeps_their_weight() -> None:
    pool = Played([*placed("person", 0, 1, busy=0.02), *placed("hog", 0, 1, 1)])
    pool.run(10)
    assert min(pool.told["person0"], pool.told["person1"]) > 0.95
    assert pool.run(10)["person"] == pytest.approx(0.4, rel=0.05)


def test_hiding_what_is_wanted_gets_nobody_more() -> None:
    """What executors say of their queues only tells what they would take; their part follows from what was counted."""
    honest = [*placed("six", 0, 0, 0, 0, 1, 1), *placed("two", 1, 1)]
    lying = [*placed("six", 0, 0, 0, 0, 1, 1, says_wanted=0.0), *placed("two", 1, 1)]
    shares = []
    for notebooks in (honest, lying):
        pool = Played(notebooks)
        pool.run(20)
        shares.append(pool.run(10)["six"])
    assert shares[1] <= shares[0] * 1.1


def test_claiming_to_want_more_takes_nothing_that_computing_would_not() -> None:
    idle_liar = placed("liar", 0, busy=0.001, says_wanted=1.0)
    pool = Played([*idle_liar, *placed("a", 0, 1), *placed("b", 1)])
    pool.run(20)
    had = pool.run(10)
    computing = fair([*placed("liar", 0), *placed("a", 0, 1), *placed("b", 1)])
    for user in "ab":
        assert had[user] / 10 >= computing[user] - 0.03


def test_what_a_session_would_use_alone() -> None:
    used, wanted = np.array([(0, 0), (1, 1), (0.25, 1), (0.25, 0.5), (0.01, 0.01), (0, 1)], np.float64).T
    # Nothing; all of it; one that waited for the rest; 0.5 of thinking for 0.25 of work; little; held back altogether.
    assert demand(used, wanted) == pytest.approx([0.0, 1.0, 1.0, 1.1 / 3, 0.011, 1.0])


def test_what_there_is_of_a_device_is_what_is_used_of_it_while_somebody_wants_it() -> None:
    device = np.array([0, 0, 1, 2, 3, 3, 4])
    used, wanted = np.array([0.4, 0.4, 0.3, 0.01, 0.6, 0.6, 0.0]), np.array([1.0, 1.0, 0.3, 1.0, 1.0, 1.0, 0.0])
    found = capacity(device, used, wanted, np.zeros(7))
    # The third is said to be wanted and hardly used, which is not believed; nobody has come to the last.
    assert found.tolist() == pytest.approx([0.8, 1.0, 0.5, 1.0, 1.0])
    # Two by turns, each of whom wants it three quarters of the time: somebody always does, and a fifth is unused.
    by_turns = np.array([0, 0]), np.array([0.4, 0.4]), np.array([0.75, 0.75])
    assert capacity(*by_turns, np.array([0.2, 0.2])).tolist() == pytest.approx([0.8])
    assert capacity(*by_turns, np.zeros(2)).tolist() == pytest.approx([1.0])  # as an arbiter says that is older


def test_a_node_that_starts_anew_begins_its_clock_and_nobody_is_counted_twice() -> None:
    ledger = PoolShares()
    for at, used in ((1000.0, 500.0), (1001.0, 501.0), (1.0, 0.5), (2.0, 1.0)):
        ledger.hear(("n", 0), [Seat("s/1", "a")], [(used, at, 0.0, at)])
        ledger.settle()
    assert 0.5 <= ledger.used("a") <= 1.0
