"""Shares, rights and quotas: what was set, what holds, and what a session gets of what it wishes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_backend.gate.terms import SessionTerms
from gpu_backend.gateway.entitlements import (
    CLASSES,
    SETTABLE,
    Entitlements,
    Quota,
    Rights,
    Value,
    checked,
    refuse_wish,
    within,
    within_bounds,
)
from gpu_backend.wire.control import Terms
from gpu_backend.wire.errors import RefusalCode
from gpu_backend.wire.wish import Wish


def test_what_is_set_for_a_user_comes_before_their_group_and_that_before_the_pool() -> None:
    all_set = Entitlements(
        Quota(sessions=8, memory_bytes=100),
        Quota(sessions=50),
        Rights(largest_limit=0.9, highest_priority=1),
        {"ada": "lab", "eve": "lab"},
        {
            ("user", "ada"): {"sessions": 2, "weight": 3.0, "largest_class": "production"},
            ("group", "lab"): {"largest_class": "best-effort", "largest_request": 0.5, "weight": 5.0, "sessions": 9},
        },
    )
    assert all_set.quota("user", "ada") == Quota(sessions=2, memory_bytes=100)
    assert all_set.quota("user", "eve") == Quota(sessions=8, memory_bytes=100)
    assert all_set.quota("group", "lab") == Quota(sessions=9)
    assert all_set.quota("group", "other") == Quota(sessions=50)
    hers = Rights(largest_class="production", largest_request=0.5, largest_limit=0.9, highest_priority=1)
    assert all_set.rights("ada") == hers
    assert all_set.rights("eve").largest_class == "best-effort"
    assert all_set.rights("bob") == Rights(largest_limit=0.9, highest_priority=1)
    assert all_set.members("lab") == {"ada", "eve"}
    assert all_set.terms("ada", Wish("production", 0.7)) == Terms("lab", 3.0, 5.0, "production", 0.5, 0.9, 0)
    assert all_set.terms("bob", Wish()) == Terms("", 1.0, 1.0, "interactive", 0.0, 0.9, 0)


def test_what_the_operator_gives_without_being_asked() -> None:
    given = {"default_class": "production", "default_request": 0.25, "default_priority": 4}
    all_set = Entitlements(given={("user", "ada"): given})  # type: ignore[dict-item]
    assert all_set.terms("ada", Wish()) == Terms("", 1.0, 1.0, "production", 0.25, 1.0, 4)
    assert all_set.terms("ada", Wish("best-effort", 0.1, 0.5, 1)) == Terms("", 1.0, 1.0, "best-effort", 0.1, 0.5, 1)
    assert refuse_wish(Wish("production", 0.25, 1.0, 4), all_set.rights("ada")) is None
    assert all_set.terms("eve", Wish()) == Terms(kind="interactive")


def test_whoever_is_over_quota_runs_on_what_others_leave() -> None:
    all_set = Entitlements(given={("user", "ada"): {"weight": 2.0, "largest_request": 1.0, "highest_priority": 9}})
    terms = all_set.terms("ada", Wish("interactive", 0.5, 0.8, 3), is_over_quota=True)
    assert terms == Terms("over quota", 2.0, 0.001, "best-effort", 0.0, 0.8, 0)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("weight", "2.5", 2.5), ("sessions", "3", 3), ("memory_bytes", "0", 0), ("largest_limit", "1", 1.0),
        ("largest_class", "production", "production"), ("gpu_seconds_per_day", "3600", 3600.0),
    ],
)  # fmt: skip
def test_right_values(name: str, text: str, value: object) -> None:
    assert checked(name, text) == value


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("weight", "0"), ("weight", "-1"), ("weight", "inf"), ("weight", "nan"), ("sessions", "2.5"),
        ("sessions", "-1"), ("largest_class", "fast"), ("largest_request", "1.1"), ("largest_limit", "0"),
        ("memory_bytes", "lots"),
    ],
)  # fmt: skip
def test_wrong_values_are_named(name: str, text: str) -> None:
    with pytest.raises(ValueError, match=r"\d|class|number"):
        checked(name, text)


@pytest.mark.parametrize(
    ("name", "text", "most"),
    [
        ("highest_priority", "99999999999999999999", "1000000"), ("default_priority", 400 * "9", "1000000"),
        ("sessions", "9223372036854775808", "1000000"), ("whole_devices", "1000001", "1000000"),
        ("memory_bytes", "1125899906842625", "1125899906842624"), ("gpu_seconds_per_day", "1e300", "1125899906842624"),
        ("weight", "1e300", "1000000"), ("weight", "1e-300", "1000000"),
    ],
)  # fmt: skip
def test_what_nothing_can_hold_is_refused_with_the_most_that_can_be(name: str, text: str, most: str) -> None:
    with pytest.raises(ValueError, match=rf"^{name} is .*; it must be between 0[.0]*1? and {most}\.$"):
        checked(name, text)


def test_every_number_that_can_be_set_has_a_bound() -> None:
    for name, kind in SETTABLE.items():
        if not issubclass(kind, str):
            with pytest.raises(ValueError, match=name):
                checked(name, str(10**20))
            assert float(within_bounds(name, 10**400)) <= 1 << 50


def test_a_priority_that_nothing_can_hold_is_refused() -> None:
    for priority in (-(1 << 63), (1 << 64) - 1):
        refusal = refuse_wish(Wish(priority=priority), Rights(highest_priority=1_000_000))
        assert refusal is not None
        assert "there are -1000000 to 1000000" in refusal.message


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("weight", "2", 2.0),
        ("sessions", "3", 3),
        ("largest_class", "production", "production"),
        ("gpu_seconds_per_month", "5", 5.0),
    ],
)
def test_right_values_are_taken_as_what_they_are(name: str, text: str, value: Value) -> None:
    assert (checked(name, text), type(checked(name, text))) == (value, type(value))


PARTS = st.floats(0, 1)
RIGHTS = st.builds(
    Rights, largest_class=st.sampled_from(CLASSES), largest_request=PARTS, largest_limit=st.floats(0.01, 1),
    highest_priority=st.integers(0, 9), default_class=st.sampled_from(["", *CLASSES]), default_request=PARTS,
    default_priority=st.integers(0, 9),
)  # fmt: skip
WISHES = st.builds(
    Wish, st.sampled_from(["", *CLASSES, "nonsense"]), st.floats(-1, 2), st.floats(-1, 2), st.integers(-9, 9)
)
WEIGHTS = st.floats(0.01, 100)


@given(WISHES, RIGHTS, WEIGHTS, st.booleans())
def test_a_wish_is_refused_or_granted_within_ones_rights(
    wish: Wish, rights: Rights, weight: float, is_over_quota: bool
) -> None:
    refusal = refuse_wish(wish, rights)
    if refusal is not None:
        assert refusal.code in (RefusalCode.QUOTA, RefusalCode.MALFORMED)
        assert refusal.message.endswith(".")
        assert refusal.remedy
        return
    named = {name: getattr(rights, name) for name in rights.__dataclass_fields__}
    given = {"weight": weight, **{name: value for name, value in named.items() if value != ""}}
    terms = Entitlements(given={("user", "ada"): given}).terms("ada", wish, is_over_quota)
    # What the arbiter takes without a word.
    SessionTerms(
        session="s", user="ada", user_weight=terms.user_weight, kind=terms.kind, request=terms.request,
        limit=terms.limit, priority=terms.priority,
    )  # type: ignore[arg-type]  # fmt: skip
    most = rights.most
    assert CLASSES.index(terms.kind) <= CLASSES.index(most.kind)  # type: ignore[arg-type]
    assert terms.request <= most.request
    assert terms.limit <= most.limit
    assert terms.priority <= most.priority
    if not is_over_quota:
        assert terms.kind == wish.kind or not wish.kind
        assert terms.request == min(wish.request, terms.limit) or not wish.request
        assert terms.priority == wish.priority or not wish.priority


@given(WISHES, RIGHTS)
def test_asking_for_what_was_granted_changes_nothing(wish: Wish, rights: Rights) -> None:
    if refuse_wish(wish, rights) is None:
        once = within(wish, rights)
        assert refuse_wish(once, rights) is None
        assert within(once, rights) == once
