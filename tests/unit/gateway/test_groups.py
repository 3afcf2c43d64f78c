"""Groups of processes that come together: who is told what, whatever order they come in and whoever leaves."""

from __future__ import annotations

import re
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_backend.gateway import groups
from gpu_backend.gateway.groups import Groups, Outcome
from gpu_backend.gateway.refusals import Refusal
from gpu_backend.wire.errors import RefusalCode
from gpu_backend.wire.groups import MOST_RANKS, JoinGroup

KEY, NAME = "ada's", "127.0.0.1:13333"
#: Longer than who has left is taken to be there.
GONE = groups.SILENT_SECONDS + 1


def who(rank: int, size: int = 2, name: str = NAME, session: str = "", attempt: str = "") -> JoinGroup:
    own = session or f"session {rank}"
    return JoinGroup(0, own, name, size, rank, attempt or f"{own}'s")


class Story:
    """A gateway's groups, and the processes of one user."""

    def __init__(self) -> None:
        self.ended: set[str] = set()
        self.groups = Groups(lambda session: session not in self.ended)
        self.now = 0.0

    def ask(
        self, rank: int, size: int = 2, name: str = NAME, session: str = "", attempt: str = "", key: str = KEY
    ) -> Outcome | Refusal:
        self.now += 0.001
        return self.groups.join(key, who(rank, size, name, session, attempt), self.now)

    def leave(self, rank: int, attempt: str = "") -> None:
        self.groups.leave(KEY, who(rank, attempt=attempt), self.now)

    def join(self, rank: int, **more: object) -> Outcome:
        outcome = self.ask(rank, **more)  # type: ignore[arg-type]
        assert isinstance(outcome, Outcome)
        return outcome

    def refused(self, rank: int, **more: object) -> str:
        refusal = self.ask(rank, **more)  # type: ignore[arg-type]
        assert isinstance(refusal, Refusal)
        return refusal.message


@pytest.fixture
def story() -> Story:
    return Story()


def test_who_comes_waits_until_nobody_is_missing(story: Story) -> None:
    assert story.join(1, size=3) == Outcome((0, 2))
    assert story.join(0, size=3) == Outcome((2,))
    last = story.join(2, size=3)
    assert (last.missing, last.channels[2]) == ((), "")
    told = {0: story.join(0, size=3).channels, 1: story.join(1, size=3).channels, 2: last.channels}
    for rank, channels in told.items():
        assert all((name == "") == (other == rank) for other, name in enumerate(channels))
        assert all(name == told[other][rank] for other, name in enumerate(channels) if other != rank)
    assert {(one.by, one.to, one.channel) for one in last.openings} == {
        (f"session {high}", f"session {low}", told[low][high]) for low, high in ((0, 1), (0, 2), (1, 2))
    }
    assert story.join(2, size=3).openings == ()  # they were opened once


def test_one_is_a_group(story: Story) -> None:
    assert story.join(0, size=1) == Outcome((), ("",))


def test_another_users_group_of_that_name_is_another(story: Story) -> None:
    story.join(0)
    assert story.join(1, key="eve's") == Outcome((0,))
    assert story.join(1, name="127.0.0.1:13334") == Outcome((0,))
    hers = story.join(0, key="eve's", session="hers").channels[1]
    assert story.join(1).channels[0] != hers
    assert story.groups.known("eve's", JoinGroup(0, "session 0", NAME, 2, 0, "session 0's")) is None


def test_the_next_group_of_that_name_is_another(story: Story) -> None:
    story.join(0)
    first = story.join(1).channels
    assert story.join(1, attempt="again") == Outcome((0,))
    assert story.join(0) != Outcome((1,)), "it did not hear what became of the first"
    second = story.join(0, attempt="once more").channels
    assert second[1] != first[0]


@pytest.mark.parametrize(
    ("held", "wanted", "why"),
    [
        ({"rank": 0}, {"rank": 0, "session": "other"}, "Another process is rank 0"),
        ({"rank": 0}, {"rank": 1, "size": 3}, "of 2 processes for others, and of 3 for this one"),
        ({"rank": 0}, {"rank": 1, "session": "session 0", "attempt": "b"}, "Rank 0 and rank 1 .* of one session"),
    ],
)
def test_what_does_not_fit_is_refused_once_the_other_is_heard_again(
    story: Story, held: dict[str, object], wanted: dict[str, object], why: str
) -> None:
    story.join(**held)  # type: ignore[arg-type]
    for _ in range(2):  # as long as it may have left
        assert story.join(**wanted) == Outcome((wanted["rank"],))  # type: ignore[arg-type]
    story.join(**held)  # type: ignore[arg-type]
    assert re.search(why, story.refused(**wanted))  # type: ignore[arg-type]


def test_who_left_is_in_nobodys_way(story: Story) -> None:
    story.join(0, size=3)
    story.now += GONE
    assert story.join(0, session="other", size=2) == Outcome((1,))
    assert story.join(1).missing == ()


def test_who_gave_up_and_tries_again_is_in_its_own_way_no_more(story: Story) -> None:
    story.join(0, size=3)
    assert story.join(0, size=2, attempt="again") == Outcome((1,))
    assert story.join(1).missing == ()


def test_whose_session_ended_is_missing_at_once(story: Story) -> None:
    story.join(0, size=3)
    story.ended.add("session 0")
    assert story.join(1, size=3) == Outcome((0, 2))
    assert story.join(0, size=3, session="other") == Outcome((2,))


def test_what_became_of_a_group_is_known_for_a_while(story: Story) -> None:
    story.join(0)
    told = story.join(1).channels
    story.now += groups.KEPT_SECONDS - 1
    assert story.join(1).channels == told
    story.now += 2
    assert story.join(1) == Outcome((0,))


@pytest.mark.parametrize(
    "more",
    [
        {"rank": 2, "size": 2}, {"rank": -1}, {"rank": 0, "size": 0}, {"rank": 0, "size": MOST_RANKS + 1},
        {"rank": 0, "name": ""}, {"rank": 0, "name": "x" * 257}, {"rank": 0, "attempt": "x" * 65},
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(story: Story, more: dict[str, object]) -> None:
    refusal = story.ask(**more)  # type: ignore[arg-type]
    assert isinstance(refusal, Refusal)
    assert refusal.code is RefusalCode.MALFORMED


def test_a_user_has_so_many_groups_in_the_making(story: Story) -> None:
    for number in range(groups.MOST_FORMING):
        story.join(0, name=str(number))
    assert "are coming together already" in story.refused(0, name="one more")
    assert story.join(0, name="hers", key="eve's").missing == (1,)
    assert story.join(0, name="0").missing == (1,)  # it asks again
    story.now += GONE
    assert story.join(0, name="one more").missing == (1,)


def test_whoever_asks_a_lot_pushes_out_what_is_kept_of_nobody_else(story: Story) -> None:
    story.join(0)
    told = story.join(1).channels
    for number in range(groups.MOST_KEPT):
        for rank in range(2):
            story.join(rank, attempt=f"{number} {rank}", key="eve's")
    assert story.join(1).channels == told
    assert story.join(0, attempt="0 0", key="eve's") == Outcome((1,)), "their own eldest is kept no more"


def test_nothing_is_kept_of_a_group_of_one(story: Story) -> None:
    story.join(0)
    told = story.join(1).channels
    for number in range(groups.MOST_KEPT):
        story.join(0, size=1, name="alone", attempt=str(number))
    assert story.join(1).channels == told


def test_so_many_more_want_to_be_what_one_is(story: Story) -> None:
    story.join(0)
    for number in range(MOST_RANKS):
        assert story.join(0, session=f"other {number}").missing
    refusal = story.ask(0, session="one more")
    assert isinstance(refusal, Refusal)
    assert refusal.code is RefusalCode.OVER_CREDIT
    assert "16 more processes of yours want to be in the group 127" in refusal.message
    assert story.join(0, session="other 3").missing  # it asks again
    story.ended.add("other 0")
    assert story.join(0, session="one more").missing


def test_whoever_asks_a_lot_does_not_have_the_groups_of_all_gone_through_each_time() -> None:
    looked_at: list[str] = []
    story = Story()
    story.groups = Groups(lambda session: not looked_at.append(session))  # type: ignore[func-returns-value]
    for number in range(groups.MOST_FORMING):
        story.join(0, name=str(number), session="ada's")
    looked_at.clear()
    for number in range(100):
        story.join(0, size=1, attempt=str(number), key="eve's")
    assert looked_at.count("ada's") == 0
    story.now += groups.LOOK_SECONDS
    story.join(0, size=1, key="eve's")
    assert looked_at.count("ada's") == groups.MOST_FORMING


def test_who_gave_up_is_waited_for_and_counted_on_no_more(story: Story) -> None:
    story.join(0)
    story.leave(0)
    assert story.join(1) == Outcome((0,)), "the group would be whole with one that is not there"
    assert story.join(0) == Outcome((0,)), "what it had said before and came late counts no more"
    assert story.join(1) == Outcome((0,))
    assert story.join(0, attempt="again").missing == ()


def test_who_gave_up_waiting_for_a_place_is_in_nobodys_way(story: Story) -> None:
    story.join(0)
    story.join(0, session="other")
    story.leave(0, attempt="other's")
    assert story.join(1).missing == ()


def test_who_gives_up_what_is_over_changes_nothing(story: Story) -> None:
    story.join(0)
    told = story.join(1).channels
    story.leave(1)
    assert story.join(1).channels == told
    story.groups.leave(KEY, who(5), story.now)


_asked = st.tuples(
    st.sampled_from(["ada's", "eve's"]), st.sampled_from("ab"), st.integers(0, 2), st.integers(0, 4),
    st.sampled_from([0.0, 0.1, 1.6, GONE]),
)  # fmt: skip


@given(st.lists(_asked, max_size=60))
def test_whatever_they_ask_a_whole_group_agrees_on_its_channels(asked: list[tuple[str, str, int, int, float]]) -> None:
    """Of each key some processes, each of which wants one rank of a group of three, in any order and with pauses."""
    forming = Groups(lambda session: True)
    told: dict[tuple[str, str], tuple[int, tuple[str, ...]]] = {}
    opened: list[str] = []
    now = count()
    passed = 0.0
    for key, name, rank, process, pause in asked:
        passed += pause
        attempt = f"{key} {name} {rank} {process}"
        outcome = forming.join(key, JoinGroup(0, attempt, name, 3, rank, attempt), passed + next(now) * 1e-6)
        if isinstance(outcome, Outcome) and not outcome.missing:
            told[key, attempt] = rank, outcome.channels
            opened += [one.channel for one in outcome.openings]
            assert all(one.by.startswith(key) and one.to.startswith(key) for one in outcome.openings)
    assert len(set(opened)) == len(opened)
    by_channel: dict[str, set[tuple[str, int, int]]] = {}
    for (key, _), (rank, channels) in told.items():
        assert channels[rank] == ""
        for other, channel in enumerate(channels):
            if other != rank:
                assert channel in opened
                by_channel.setdefault(channel, set()).add((key, min(rank, other), max(rank, other)))
    assert all(len(ends) == 1 for ends in by_channel.values()), "no channel is of two users, or of two pairs"
