"""What every policy owes the core, and what the core owes everybody whatever the policy: the same tests for all."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from random import Random

import pytest

from gpu_backend.arbiter import events as ev
from gpu_backend.arbiter.policies import registry
from gpu_backend.arbiter.policies.base import SharingPolicy
from gpu_backend.arbiter.scheduler import Relief, Scheduler
from gpu_backend.arbiter.views import DeviceView, SessionView, Suggestion
from gpu_backend.gate.terms import SessionClass, SessionTerms

RELIEF = Relief(after_seconds=2.0, slice_seconds=0.02)
EVENTS = 10_000


@pytest.fixture(params=registry.BUILT_IN)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@dataclass
class Executor:
    """A session's queue and gate, as far as the core can see them."""

    terms: SessionTerms
    queued: int = 0
    op_seconds: float = 0.001
    gate: ev.OpenGate | None = None
    budget: float = inf
    lane: float = 0.0


@dataclass
class World:
    """Executors that come, work, die and go at random; one device that they share."""

    policy: SharingPolicy
    random: Random
    now: float = 1000.0
    executors: dict[str, Executor] = field(default_factory=dict)
    used: dict[str, float] = field(default_factory=dict)
    joined: int = 0
    quiet_until: float = 0.0

    def __post_init__(self) -> None:
        self.scheduler = Scheduler(self.policy, RELIEF, log_length=None)

    def handle(self, event: ev.Event) -> None:
        for instruction in self.scheduler.handle(event, self.now):
            executor = self.executors[instruction.session]
            executor.gate = instruction if isinstance(instruction, ev.OpenGate) else None
            executor.budget = executor.gate.budget_seconds if executor.gate else 0.0
            executor.lane = instruction.budget_seconds if isinstance(instruction, ev.OpenLane) else 0.0
        self.scheduler.validate()

    def step(self) -> None:
        self.run(min(self.scheduler.next_deadline(), self.now + self.random.expovariate(100)))
        if self.now >= self.scheduler.next_deadline():
            self.handle(ev.TimePassed())
            return
        if self.now < self.quiet_until:
            return
        if self.random.random() < 0.003:  # nobody changes their mind for a while: whoever can be starved is
            self.quiet_until = self.now + 2 * RELIEF.after_seconds
        self.random.choice([self.join, self.leave, self.work, self.work, self.work, self.change, self.pass_by])()

    def run(self, until: float) -> None:
        """Let time pass: whoever may run shares the device; each then reports."""
        elapsed, self.now = until - self.now, until
        running = [e for e in self.executors.values() if e.gate and e.queued and e.budget > 0]
        for executor in running:
            part = executor.gate.duty * elapsed / len(running) if executor.gate else 0.0
            seconds = min(part, executor.budget, executor.queued * executor.op_seconds)
            ops = min(executor.queued, int(seconds / executor.op_seconds))
            executor.queued -= ops
            executor.budget -= seconds
            self.charge(executor, seconds)
            self.handle(ev.Reported(executor.terms.session, seconds, ops, executor.queued))

    def pass_by(self) -> None:
        """Use a lane: short ops of an idle session that are heard of when they are done."""
        for executor in [each for each in self.executors.values() if each.lane > 0 and not each.queued]:
            seconds = min(executor.lane, 0.4e-3)
            executor.lane -= seconds
            self.charge(executor, seconds)
            self.handle(ev.Reported(executor.terms.session, seconds, 1, 0))

    def charge(self, executor: Executor, seconds: float) -> None:
        self.used[executor.terms.user] = self.used.get(executor.terms.user, 0.0) + seconds

    def join(self) -> None:
        if len(self.executors) < 12:
            self.joined += 1
            terms = self.terms(f"s{self.joined}")
            self.executors[terms.session] = Executor(terms, op_seconds=10 ** self.random.uniform(-5, -2))
            self.handle(ev.SessionJoined(terms))

    def terms(self, session: str) -> SessionTerms:
        limit = self.random.choice([1.0, 0.4])
        return SessionTerms(
            session=session,
            user=f"u{self.random.randrange(5)}",
            group=f"g{self.random.randrange(2)}",
            user_weight=self.random.choice([1, 2, 4]),
            kind=self.random.choice(list(SessionClass)),
            request=self.random.choice([0, 0.1, limit]),
            limit=limit,
        )

    def change(self) -> None:
        if self.executors:
            executor = self.random.choice(list(self.executors.values()))
            executor.terms = self.terms(executor.terms.session)
            self.handle(ev.TermsChanged(executor.terms))

    def leave(self) -> None:
        """An executor ends or is killed: what it used since its last report is counted too."""
        if len(self.executors) > 3:
            executor = self.executors.pop(self.random.choice(list(self.executors)))
            seconds = self.random.uniform(0, 0.01)
            self.charge(executor, seconds)
            self.handle(ev.SessionLeft(executor.terms.session, seconds))

    def work(self) -> None:
        if self.executors:
            executor = self.random.choice(list(self.executors.values()))
            executor.queued = self.random.choice([0, 1, 10, 10_000])
            urgent = executor.queued == 1
            self.handle(ev.Reported(executor.terms.session, 0.0, 0, executor.queued, is_urgent=urgent))


@pytest.fixture
def world(name: str) -> World:
    return World(registry.make(name), Random(7))


def check(world: World, events: int, arrivals: int = 0) -> None:
    """Invariants hold after each; gates are as the core says; nobody starves; all time is counted, for its user."""
    served: dict[str, float] = {}
    longest = RELIEF.after_seconds * 1.1 + 12 * 0.1  # several may be due at a time, each for a slice or an op
    for _ in range(events):
        if arrivals and world.joined >= arrivals:
            break
        world.step()
        if len(world.scheduler.log) > EVENTS:
            world.scheduler.log.clear()
        for key, executor in world.executors.items():
            assert world.scheduler.is_open(key) == (executor.gate is not None)
            if executor.gate is not None or not executor.queued:
                served[key] = world.now
            assert world.now - served.setdefault(key, world.now) <= longest, key
    assert world.scheduler.used_by_user == pytest.approx(world.used)
    assert not [refusal for decision in world.scheduler.log for refusal in decision.refusals]


def test_ten_thousand_random_events(world: World) -> None:
    check(world, EVENTS)
    assert world.joined > 100


@pytest.mark.soak
@pytest.mark.timeout(1_200)
def test_ten_thousand_arrivals_and_departures(world: World) -> None:
    check(world, 1_000_000, arrivals=5_000)
    assert 2 * world.joined - len(world.executors) >= 9_980


def test_the_same_events_lead_to_the_same_instructions(world: World, name: str) -> None:
    """A decision depends on the log alone: not on a clock, not on an order of sets, not on an object's address."""
    for _ in range(2_000):
        world.step()
    again = Scheduler(registry.make(name), RELIEF)
    for decision in world.scheduler.log:
        assert again.handle(decision.event, decision.now) == decision.instructions


def test_time_is_only_a_difference(name: str) -> None:
    """Shifted by a power of two, so that no rounding tells the runs apart, the story is the same."""
    stories = []
    for origin in (0.0, 1024.0):
        scheduler = Scheduler(registry.make(name), RELIEF, log_length=None)
        for number in range(3):
            terms = SessionTerms(session=f"s{number}", user=f"u{number}", request=0.25)
            scheduler.handle(ev.SessionJoined(terms), origin)
            scheduler.handle(ev.Reported(terms.session, 0.0, 0, 1000), origin)
        for tick in range(1, 65):
            held = [f"s{number}" for number in range(3) if scheduler.is_open(f"s{number}")]
            for key in held:
                scheduler.handle(ev.Reported(key, 0.03125 / len(held), 1, 1000), origin + tick / 32)
        stories.append([tuple(type(i).__name__ + i.session for i in d.instructions) for d in scheduler.log])
    assert stories[0] == stories[1]


def test_work_conserving_policies_always_suggest_somebody(world: World) -> None:
    if not world.policy.is_work_conserving:
        pytest.skip("promises no work conservation")
    for _ in range(2_000):
        world.step()
        waiting = [e for e in world.executors.values() if e.queued]
        assert not waiting or any(e.gate for e in waiting)


def test_one_session_alone_has_the_device(name: str) -> None:
    """After at most a few seconds of learning, one busy session without bounds is never held back for long."""
    world = World(registry.make(name), Random(1))
    terms = SessionTerms(session="only", user="u", request=1.0)
    world.executors["only"] = executor = Executor(terms, queued=10**9)
    world.handle(ev.SessionJoined(terms))
    world.handle(ev.Reported("only", 0.0, 0, executor.queued))
    start = world.now
    while world.now < start + 10:
        world.run(min(world.scheduler.next_deadline(), world.now + 0.05))
        if world.now >= world.scheduler.next_deadline():
            world.handle(ev.TimePassed())
    assert world.used["u"] >= 0.99 * (world.now - start)


def test_who_has_left_is_forgotten(name: str) -> None:
    """No table of a policy grows with the sessions that ever were."""
    policy = registry.make(name)
    scheduler = Scheduler(policy)
    for number in range(300):
        terms = SessionTerms(session=f"s{number}", user=f"u{number % 3}", kind=list(SessionClass)[number % 3])
        scheduler.handle(ev.SessionJoined(terms), number)
        scheduler.handle(ev.Reported(terms.session, 0.0, 0, 5), number)
        scheduler.handle(ev.Reported(terms.session, 0.1, 5, 0), number + 0.1)
        scheduler.handle(ev.SessionLeft(terms.session), number + 0.2)
    sizes = {key: len(value) for key, value in vars(policy).items() if hasattr(value, "__len__")}
    assert not {key: size for key, size in sizes.items() if size > 30}


def test_a_policy_says_what_it_takes_and_what_it_cannot() -> None:
    for kind in registry.BUILT_IN.values():
        text = kind.__doc__ or ""
        assert len(text) > 200
        assert "Source" in text or "standard" in text or "ours" in text, kind


def test_a_policy_is_not_asked_to_keep_what_it_is_shown(name: str) -> None:
    """Views are frozen: a policy that tries to write in one fails."""
    view = SessionView(SessionTerms(session="s", user="u"))
    with pytest.raises(AttributeError):
        view.queued_ops = 1  # type: ignore[misc]
    empty = DeviceView(0.0, (), (), (), (), ())
    assert registry.make(name).suggest(empty) == Suggestion(ask_again_at=inf)
