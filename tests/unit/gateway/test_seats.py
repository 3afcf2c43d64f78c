"""Numbers of sessions, claims and shares: made device by device, and the same as if all were numbered anew."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gpu_backend.gateway.filling import Vessel
from gpu_backend.gateway.pool_shares import PoolShares
from gpu_backend.gateway.seats import Bench, Seat, Seats

Seating = dict[Vessel, list[Seat]]


@st.composite
def seatings(draw: st.DrawFn) -> Seating:
    """Some devices, and who is on them; a key is on one device only."""
    found: Seating = {}
    for number in draw(st.lists(st.integers(0, 4), unique=True, max_size=5)):
        users = draw(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["", "g", "h"])), max_size=5))
        keys = draw(st.permutations(range(len(users))))
        found["n", number] = [
            Seat(f"{number}.{key}", user, group, draw(st.sampled_from([1.0, 2.0])))
            for key, (user, group) in zip(keys, users, strict=True)
        ]
    return found


def plainly(seating: Seating) -> tuple[list[tuple[Vessel, str, str]], list[tuple[Vessel, str]], list[str]]:
    """Return claims, shares and sessions in the order of their numbers, by their definition."""
    sorted_seats = [(d, seat) for d, seats in seating.items() for seat in sorted(seats, key=lambda seat: seat.group)]
    claims = list(dict.fromkeys((device, seat.user, seat.group) for device, seat in sorted_seats))
    shares = list(dict.fromkeys((device, seat.group) for device, seat in sorted_seats))
    return claims, shares, [seat.key for seats in seating.values() for seat in seats]


@given(seatings())
def test_everything_is_numbered_device_by_device(seating: Seating) -> None:
    seats = Seats({device: Bench(there) for device, there in seating.items()})
    claims, shares, _ = plainly(seating)
    every = [(device, seat) for device, there in seating.items() for seat in there]
    assert [claims[number] for number in seats.claim] == [(d, seat.user, seat.group) for d, seat in every]
    assert [shares[number] for number in seats.share] == [(device, group) for device, _, group in claims]
    assert [list(seating)[number] for number in seats.share_device] == [device for device, _ in shares]
    assert [list(seating)[number] for number in seats.device] == [device for device, _ in every]
    assert [seats.claims.number(device, (user, group)) for device, user, group in claims] == list(range(len(claims)))
    assert seats.sessions.tolist() == [len(there) for there in seating.values()]


@given(seatings(), seatings(), st.booleans())
def test_what_is_known_goes_with_those_whose_it_is(before: Seating, after: Seating, stay: bool) -> None:
    old = {device: Bench(there) for device, there in before.items()}
    if stay:  # some devices are as they were, which is told by their benches
        after = after | {device: before[device] for device in list(before)[::2]}
    kept = {d: old[d] if d in old and list(old[d].seats) == there else Bench(there) for d, there in after.items()}
    earlier = Seats(old)
    seats, anew = Seats(kept, earlier), Seats(kept)
    for of_seats in ("claim", "share", "device", "share_device", "sessions"):
        assert getattr(seats, of_seats).tolist() == getattr(anew, of_seats).tolist()
    for now, then, place in ((seats.claims, earlier.claims, 0), (seats.shares, earlier.shares, 1)):
        was, is_now = plainly(before)[place], plainly(after)[place]
        assert now.moved_from(then).before.tolist() == [was.index(one) if one in was else -1 for one in is_now]  # type: ignore[arg-type]
    was, is_now = plainly(before)[2], plainly(after)[2]
    assert seats.rows.moved_from(earlier.rows).before.tolist() == [was.index(k) if k in was else -1 for k in is_now]


@given(st.lists(seatings(), min_size=1, max_size=5))
def test_seats_that_go_on_divide_as_those_that_begin(course: list[Seating]) -> None:
    """Whose number a user has is nobody's business: who has a claim on what, and by what weight, is the same."""
    seats: Seats | None = None
    users, groups = None, None
    for seating in course:
        benches = {device: Bench(there) for device, there in seating.items()}
        if seats is not None:
            known = seats.benches
            benches = {d: known[d] if d in known and known[d].seats == b.seats else b for d, b in benches.items()}
        seats, anew = Seats(benches, seats), Seats(benches)
        demand, among = np.full(len(seats.share), 0.7), np.full(len(seats.share_device), 0.7)
        for fill, wanted in ((Seats.fill_users, demand), (Seats.fill_groups, among)):
            before = users if fill is Seats.fill_users else groups
            one, other = fill(seats, np.zeros(len(wanted)), before), fill(anew, np.zeros(len(wanted)))
            capacity = np.full(len(one.levels), 1.0)
            one.settle(wanted, capacity)
            other.settle(wanted, capacity)
            assert one.parts.tolist() == other.parts.tolist()
            assert one.levels.tolist() == other.levels.tolist()
            users, groups = (one, groups) if fill is Seats.fill_users else (users, one)


def test_weights_of_all_sessions_are_those_that_each_is_told() -> None:
    ledger = PoolShares()
    seats = {("n", n): [Seat(f"{n}.{k}", user, "", weight) for k, (user, weight) in enumerate(at)] for n, at in CROWD}
    for now in range(6):
        for device, there in seats.items():
            books = [(0.3 * now, 1.0 * now, 0.1 * now, 1.0 * now) for _ in there]
            ledger.hear(device, there, books, is_steered=device[1] != 2)
        ledger.settle()
    told = [ledger.weights(device, seat.user, seat.group).user for device, there in seats.items() for seat in there]
    assert ledger.user_weights().tolist() == told
    assert min(told) < 1.0


#: Who is on which device, with which weight.
CROWD = [
    (0, [("a", 1.0), ("b", 1.0), ("a", 1.0)]),
    (1, [("a", 1.0), ("c", 2.0), ("b", 1.0), ("b", 1.0)]),
    (2, [("c", 2.0), ("a", 1.0)]),
    (3, []),
]


@given(st.lists(seatings(), min_size=2, max_size=4), st.randoms(use_true_random=False))
def test_a_ledger_that_keeps_benches_says_what_one_says_that_keeps_none(course: list[Seating], random: object) -> None:
    keeping, anew = PoolShares(), PoolShares()
    used: dict[str, float] = {}
    for now, seating in enumerate(course):
        for device in {("n", n) for n in range(5)}:
            there = seating.get(device, [])
            books = []
            for seat in there:
                used[seat.key] = used.get(seat.key, 0.0) + random.random()  # type: ignore[attr-defined]
                books.append((used[seat.key], now + 1.0, 0.1 * now, float(now)))
            keeping.hear(device, there, books)
            anew.hear(device, [], [])  # forgets its bench, and settles only afterwards
            anew.hear(device, there, books)
        keeping.settle()
        anew.settle()
        for device, there in seating.items():
            for seat in there:
                assert keeping.weights(device, seat.user, seat.group) == anew.weights(device, seat.user, seat.group)
        assert np.array_equal(keeping.used("a"), anew.used("a"))
