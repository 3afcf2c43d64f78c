"""What sessions are entitled to and have used, told by a gateway with a played agent."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from gpu_backend.gateway.directory import Directory
from gpu_backend.gateway.entitlements import Entitlements, Quota, Rights
from gpu_backend.gateway.ledger import today
from gpu_backend.transport.curve import KeyPair
from gpu_backend.wire import control
from gpu_backend.wire.control import Terms
from gpu_backend.wire.errors import PoolRefusal
from gpu_backend.wire.wish import Wish

from .played_pool import ADA, BOSS, EVE, PlayedAgent, World, play, until


def records(tmp_path: Path) -> closing[Directory]:
    """The operator's command line, which writes while the gateway runs."""
    return closing(Directory(tmp_path / "directory.sqlite"))


async def used(world: World, keys: KeyPair, seconds: float) -> None:
    async def is_so() -> bool:
        return sum(row.gpu_seconds for row in (await world.usage(keys)).rows) == seconds

    await until(is_so)


def terms_of(agent: PlayedAgent, session: str) -> Terms | None:
    told = [one.terms for one in agent.heard if isinstance(one, control.SetTerms) and one.session == session]
    return told[-1] if told else None


def test_a_launch_says_whose_it_is_and_what_they_are_entitled_to(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent) -> None:
        with records(tmp_path) as own:
            own.set_group("ada", "lab")
            own.entitle("user", "ada", "weight", 2.0)
            own.entitle("group", "lab", "weight", 4.0)
        ticket = await world.ask(ADA, control.OpenSession(0, "a", wish=Wish("best-effort", 0.0, 0.5)))
        assert isinstance(ticket, control.Ticket)
        launch = agent.executors[ticket.session, 1]
        assert launch.user == "ada"
        assert launch.terms == Terms("lab", 2.0, 4.0, "best-effort", 0.0, 0.5, 0)

    play(tmp_path, story)


def test_shares_change_while_a_session_runs(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent) -> None:
        ticket = await world.open()
        assert agent.executors[ticket.session, 1].terms == Terms(kind="interactive")
        with records(tmp_path) as own:
            own.entitle("user", "ada", "weight", 3.0)

        async def told() -> bool:
            return terms_of(agent, ticket.session) == Terms(user_weight=3.0, kind="interactive")

        await until(told)

    play(tmp_path, story)


def test_a_restarted_agent_is_told_the_terms_again(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent) -> None:
        ticket = await world.open()
        agent.reconnect()
        await agent.report()

        async def told() -> bool:
            return terms_of(agent, ticket.session) == Terms(kind="interactive")

        await until(told)

    play(tmp_path, story)


def test_a_wish_beyond_ones_rights_is_refused_in_words(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent) -> None:
        with pytest.raises(PoolRefusal, match="class production; in this pool interactive is the largest"):
            await world.ask(ADA, control.OpenSession(0, "a", wish=Wish("production")))
        ticket = await world.open()
        for wish, words in (
            (Wish("production"), "class production"),
            (Wish("fast"), "no class 'fast'"),
            (Wish(request=0.5), "guaranteed part of 0.5"),
            (Wish(priority=3), "priority 3"),
            (Wish(request=0.9, limit=0.5), "request <= limit"),
            (Wish(limit=float("nan")), "request <= limit"),
        ):
            with pytest.raises(PoolRefusal, match=words):
                await world.ask(ADA, control.SetWish(0, ticket.session, wish))
        assert terms_of(agent, ticket.session) is None

    play(tmp_path, story)


def test_a_wish_within_ones_rights_counts_at_once_and_is_kept(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent) -> None:
        ticket = await world.open()
        wish = Wish("production", 0.25, 0.75, 2)
        assert isinstance(await world.ask(ADA, control.SetWish(0, ticket.session, wish)), control.Done)

        async def told() -> bool:
            return terms_of(agent, ticket.session) == Terms("", 1.0, 1.0, "production", 0.25, 0.75, 2)

        await until(told)
        with records(tmp_path) as own:
            assert [one.wish for one in own.sessions()] == [wish]
            own.entitle("user", "ada", "largest_class", "best-effort")  # what was granted is taken back

        async def lowered() -> bool:
            terms = terms_of(agent, ticket.session)
            return terms is not None and terms.kind == "best-effort"

        await until(lowered)

    rights = Rights(largest_class="production", largest_request=0.5, highest_priority=5)
    play(tmp_path, story, defaults=Entitlements(default_rights=rights))


def test_usage_is_booked_and_shown_by_the_same_rule_as_the_pool(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent) -> None:
        ada, eve = await world.open(ADA, "secret.ipynb"), await world.open(EVE, "e.ipynb")
        await agent.use(ada.session, 2.0, peak_bytes=100, received_bytes=10, sent_bytes=20)
        await agent.use(eve.session, 6.0)
        await used(world, ADA, 8.0)
        others, own = (await world.usage(ADA, "notebook")).rows
        assert (own.user, own.notebook, own.gpu_seconds, own.peak_bytes) == ("ada", "secret.ipynb", 2.0, 100)
        assert (others.user, others.notebook, others.gpu_seconds) == ("", "", 6.0)
        seen = {(row.user, row.notebook) for row in (await world.usage(BOSS, "notebook")).rows}
        assert seen == {("ada", ""), ("eve", "")}
        by_session = {row.session: row.gpu_seconds for row in (await world.usage(BOSS, "session")).rows}
        assert by_session == {ada.session: 2.0, eve.session: 6.0}
        by_day = {(row.day, row.user): row.gpu_seconds for row in (await world.usage(ADA, "day")).rows}
        assert by_day == {(today().isoformat(), "ada"): 2.0, (today().isoformat(), ""): 6.0}

    play(tmp_path, story)


def test_by_class_each_sees_their_own_and_of_the_others_the_sums(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent) -> None:
        ada, eve, boss = [await world.open(keys) for keys in (ADA, EVE, BOSS)]
        await agent.use(ada.session, 2.0, by_class=(0.5, 1.5))
        await agent.use(eve.session, 6.0, by_class=(4.0, 0.0, 2.0))
        await agent.use(boss.session, 1.0, by_class=(1.0,))
        await used(world, ADA, 9.0)
        seen = {(row.user, row.op_class): row.gpu_seconds for row in (await world.usage(ADA, "class")).rows}
        own = {("ada", "elementwise"): 0.5, ("ada", "reduction"): 1.5}
        assert seen == {**own, ("", "elementwise"): 5.0, ("", "linalg"): 2.0}
        seen = {(row.user, row.op_class): row.gpu_seconds for row in (await world.usage(BOSS, "class")).rows}
        eves = {("eve", "elementwise"): 4.0, ("eve", "linalg"): 2.0}
        assert seen == {**own, **eves, ("boss", "elementwise"): 1.0}

    play(tmp_path, story)


def test_the_last_word_of_an_executor_is_booked(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent) -> None:
        ticket = await world.open()
        await agent.use(ticket.session, 1.0)
        agent.usage[ticket.session, 1] = control.Usage(1.5)
        await agent.lose(ticket.session, 1, control.EndCause.CRASHED)
        await used(world, ADA, 1.5)
        renewed = await world.renew(ticket.session)
        assert isinstance(renewed, control.Ticket)
        await agent.use(ticket.session, 2.0, epoch=2)
        await used(world, ADA, 3.5)

    play(tmp_path, story)


def test_a_restarted_gateway_counts_nothing_twice(tmp_path: Path) -> None:
    async def first(world: World, agent: PlayedAgent) -> None:
        ticket = await world.open()
        names.append(ticket.session)
        await agent.use(ticket.session, 3.0)
        await used(world, ADA, 3.0)

    async def second(world: World, agent: PlayedAgent) -> None:
        agent.executors[names[0], 1] = control.Launch(names[0], 1, 0, ADA.public.decode(), 0, 60.0)
        await agent.use(names[0], 3.0)
        await agent.use(names[0], 3.5)
        await used(world, ADA, 3.5)

    names: list[str] = []
    play(tmp_path, first)
    play(tmp_path, second)


def test_what_a_session_does_now_is_its_owners_and_the_operators_to_see(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent) -> None:
        ticket = await world.open()
        await agent.use(ticket.session, 0.0, peak_bytes=7)

        async def is_busy() -> bool:
            used = agent.usage[ticket.session, 1].gpu_seconds
            await agent.use(ticket.session, used + 1e-6, peak_bytes=9)
            (own,) = (await world.view(ADA)).sessions
            return own.busy > 0 and own.gpu_seconds == agent.usage[ticket.session, 1].gpu_seconds

        await until(is_busy)
        for keys in (ADA, BOSS):
            (own,) = (await world.view(keys)).sessions
            assert (own.kind, own.peak_bytes) == ("interactive", 9)
            assert own.gpu_seconds == agent.usage[ticket.session, 1].gpu_seconds
            assert 0 < own.busy < 0.5
        view = await world.view(EVE)
        (anothers,) = view.sessions
        assert (anothers.kind, anothers.peak_bytes, anothers.gpu_seconds, anothers.busy) == ("", 0, 0.0, 0.0)
        assert view.devices[0].busy > 0

    play(tmp_path, story)


@pytest.mark.parametrize("closes", [False, True])
def test_used_up_gpu_time_refuses_new_sessions_and_puts_running_ones_behind(tmp_path: Path, closes: bool) -> None:
    async def story(world: World, agent: PlayedAgent) -> None:
        ticket = await world.open()
        await agent.use(ticket.session, 10.0)
        await used(world, ADA, 10.0)
        (limit,) = (await world.usage(ADA)).quotas
        assert (limit.whose, limit.what, limit.limit) == ("you", "GPU seconds per day", 10.0)

        async def is_behind() -> bool:
            if closes:
                return not (await world.view()).sessions
            terms = terms_of(agent, ticket.session)
            return terms == Terms("over quota", group_weight=0.001, kind="best-effort")

        await until(is_behind)
        with pytest.raises(PoolRefusal, match="You have used 10 of the 10 GPU seconds that may be used in a day"):
            await world.open()
        await world.open(EVE)  # hers is not used up
        if not closes:
            assert (await world.view()).sessions[0].is_over_quota

    quota = Quota(gpu_seconds_per_day=10.0)
    play(tmp_path, story, defaults=Entitlements(quota), closes_over_quota=closes)


def test_a_groups_quota_holds_for_all_its_members(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent) -> None:
        with records(tmp_path) as own:
            for user in ("ada", "eve"):
                own.set_group(user, "lab")
            own.entitle("group", "lab", "sessions", 2)
        await world.open(ADA)
        await world.open(EVE)
        with pytest.raises(PoolRefusal, match="Your group lab has 2 of 2 sessions"):
            await world.open(ADA)
        await world.open(BOSS)

    play(tmp_path, story)


def test_who_asks_for_no_amount_is_given_what_is_left_of_their_quota(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent) -> None:
        part = await world.ask(ADA, control.OpenSession(0, "part.ipynb", "", 3 << 30))
        rest = await world.open(ADA)
        assert isinstance(part, control.Ticket)
        assert (part.memory_limit_bytes, rest.memory_limit_bytes) == (3 << 30, 9 << 30)
        assert "that was left of the quota" in agent.executors[rest.session, 1].memory_rule
        with pytest.raises(PoolRefusal, match=r"12 GiB of the 12 GiB .* \(part.ipynb, a.ipynb\)"):
            await world.open(ADA)
        # Of the device's 16 GiB only three are kept free for somebody: others need not wait.
        assert (await world.open(EVE)).memory_limit_bytes == 12 << 30
        assert (await world.open(BOSS)).memory_limit_bytes == 12 << 30

    play(tmp_path, story, defaults=Entitlements(Quota(memory_bytes=12 << 30)), sessions_per_device=9)


def test_the_pools_default_is_given_as_far_as_the_quota_goes(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent) -> None:
        limits = [(await world.open(ADA)).memory_limit_bytes >> 30 for _ in range(2)]
        assert limits == [3, 2]

    play(tmp_path, story, defaults=Entitlements(Quota(memory_bytes=5 << 30)), default_memory_bytes=3 << 30)


def test_a_question_about_usage_that_makes_no_sense_is_told_so(tmp_path: Path) -> None:
    async def story(world: World, agent: PlayedAgent) -> None:
        for by, since in (("planet", ""), ("user", "yesterday"), ("user", "20260101")):
            with pytest.raises(PoolRefusal, match="since a day such as"):
                await world.usage(ADA, by, since)

    play(tmp_path, story)
