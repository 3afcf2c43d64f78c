"""The books: what is booked is what was used, however often and in whatever order it is reported."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_backend.gateway.accounts import GROUPINGS, Accounts, Owned, Reading
from gpu_backend.wire.control import Usage
from gpu_backend.wire.errors import PoolRefusal
from gpu_backend.wire.views import UsageRow

from .killing import last_said

DAY = date(2026, 11, 21)
SESSION = Owned("s", "ada", "lab", "a.ipynb", 100.0)


@contextmanager
def books(path: Path) -> Iterator[Accounts]:
    with closing(Accounts(path)) as accounts:
        yield accounts


def reading(seconds: float, epoch: int = 1, owned: Owned = SESSION, peak: int = 0, moved: int = 0) -> Reading:
    return Reading(owned, epoch, Usage(seconds, peak, moved, 2 * moved))


def test_only_what_is_new_is_booked(tmp_path: Path) -> None:
    with books(tmp_path / "a.sqlite") as accounts:
        assert accounts.book([reading(2.0, peak=10, moved=5)], DAY) == {"ada": 2.0}
        assert accounts.book([reading(2.0, peak=10, moved=5)], DAY) == {"ada": 0.0}
        assert accounts.book([reading(5.0, peak=7, moved=6)], DAY) == {"ada": 3.0}
        (row,) = accounts.summary("user")
        assert (row.user, row.group, row.sessions) == ("ada", "lab", 1)
        assert (row.gpu_seconds, row.peak_bytes, row.received_bytes, row.sent_bytes) == (5.0, 10, 6, 12)


def test_each_epoch_counts_from_zero(tmp_path: Path) -> None:
    with books(tmp_path / "a.sqlite") as accounts:
        accounts.book([reading(4.0)], DAY)
        accounts.book([reading(1.0, epoch=2)], DAY)
        assert accounts.book([reading(4.0)], DAY) == {"ada": 0.0}  # a late word of the first
        assert accounts.totals() == {"ada": 5.0}


def test_each_way_to_tell_apart(tmp_path: Path) -> None:
    eve = Owned("t", "eve", "", "e.ipynb", 0.0)
    with books(tmp_path / "a.sqlite") as accounts:
        accounts.book([reading(1.0), reading(10.0, owned=eve)], DAY)
        accounts.book([reading(3.0), reading(1.0, owned=SESSION._replace(session="u"))], date(2026, 11, 22))
        told = {by: {_heads(row): row.gpu_seconds for row in accounts.summary(by)} for by in GROUPINGS}
        assert told == {
            "user": {("eve",): 10.0, ("ada", "lab"): 4.0},
            "group": {(): 10.0, ("lab",): 4.0},
            "session": {("eve", "t", "e.ipynb"): 10.0, ("ada", "lab", "s", "a.ipynb"): 3.0,
                        ("ada", "lab", "u", "a.ipynb"): 1.0},
            "notebook": {("eve", "e.ipynb"): 10.0, ("ada", "a.ipynb"): 4.0},
            "class": {},
            "day": {("eve", "2026-11-21"): 10.0, ("ada", "2026-11-21"): 1.0, ("ada", "2026-11-22"): 3.0},
        }  # fmt: skip
        assert [row.gpu_seconds for row in accounts.summary("user", "2026-11-22")] == [3.0]
        assert accounts.spent("user", "ada", date(2026, 11, 22)) == 3.0
        assert accounts.spent("group", "lab", DAY) == 4.0


def _heads(row: UsageRow) -> tuple[str, ...]:
    return tuple(filter(None, (row.user, row.group, row.session, row.notebook, row.day)))


def test_lengths_of_the_last_sessions(tmp_path: Path) -> None:
    with books(tmp_path / "a.sqlite") as accounts:
        for number in range(4):
            accounts.note(SESSION._replace(session=str(number)), 110.0 + number)
        accounts.note(SESSION._replace(session="trial"), 109.0)
        accounts.note(SESSION._replace(session="0"), 500.0)  # the first end counts
        accounts.note(SESSION._replace(session="running"))
        assert accounts.lengths() == [13.0, 12.0, 11.0, 10.0]
        assert accounts.lengths(2) == [13.0, 12.0]


def test_readings_of_old_sessions_are_forgotten_and_their_use_is_not(tmp_path: Path) -> None:
    with books(tmp_path / "a.sqlite") as accounts:
        accounts.book([reading(4.0, peak=9)], DAY)
        accounts.note(SESSION, 200.0)
        accounts.forget_meters(200.0)
        assert accounts.peak_bytes("s") == 9
        accounts.forget_meters(201.0)
        assert accounts.peak_bytes("s") == 0
        assert accounts.totals() == {"ada": 4.0}


REPORTS = st.lists(st.tuples(st.integers(1, 3), st.integers(0, 50), st.booleans()), max_size=30)


@settings(max_examples=25, deadline=None)
@given(REPORTS)
def test_the_sum_is_that_of_the_last_readings(
    tmp_path_factory: pytest.TempPathFactory, reports: list[tuple[int, int, bool]]
) -> None:
    """Reports may be lost, repeated, late, and heard by one gateway after the other."""
    path = tmp_path_factory.mktemp("books") / "a.sqlite"
    accounts = Accounts(path)
    most: dict[int, int] = {}
    for epoch, seconds, is_restarted in reports:
        if is_restarted:
            accounts.close()
            accounts = Accounts(path)
        accounts.book([reading(float(seconds), epoch)], DAY)
        most[epoch] = max(most.get(epoch, 0), seconds)
    assert accounts.totals().get("ada", 0.0) == sum(most.values())
    accounts.close()


WRITER = """
import sys
from datetime import date
from pathlib import Path
from gpu_backend.gateway.accounts import Accounts, Owned, Reading
from gpu_backend.wire.control import Usage
accounts = Accounts(Path(sys.argv[1]))
for second in range(1, 100_000):
    accounts.book([Reading(Owned("s", "ada", "", "", 0.0), 1, Usage(float(second)))], date(2026, 11, 21))
    print(second, flush=True)
"""


def test_a_kill_loses_nothing_that_was_booked_and_counts_nothing_twice(tmp_path: Path) -> None:
    last = last_said(WRITER, str(tmp_path / "a.sqlite"), kill_at=50)
    with books(tmp_path / "a.sqlite") as accounts:
        assert accounts.totals()["ada"] in (last, last + 1)
        accounts.book([reading(last + 7.0)], DAY)
        assert accounts.totals()["ada"] == last + 7.0


def test_a_damaged_file_is_refused_with_a_way_out(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    path.write_bytes(b"not a database, but long enough to look like one" * 100)
    with pytest.raises(PoolRefusal, match="Move the file away"):
        Accounts(path)


def test_books_of_a_newer_version_are_left_alone(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "a.sqlite")) as db:
        db.execute("PRAGMA user_version = 99")
    with pytest.raises(PoolRefusal, match="newer version"):
        Accounts(tmp_path / "a.sqlite")


def by_class(accounts: Accounts, since: str = "") -> dict[tuple[str, str], float]:
    return {(row.user, row.op_class): row.gpu_seconds for row in accounts.summary("class", since)}


def test_time_is_told_by_class_of_op(tmp_path: Path) -> None:
    def with_classes(*seconds: float, epoch: int = 1) -> Reading:
        return Reading(SESSION, epoch, Usage(sum(seconds), 0, 0, 0, seconds))

    with books(tmp_path / "a.sqlite") as accounts:
        for _ in range(2):
            accounts.book([with_classes(1.0, 0.0, 4.0)], DAY)
        accounts.book([with_classes(1.5, 0.0, 4.0), with_classes(0.0, 2.0, epoch=2)], date(2026, 11, 22))
        accounts.book([with_classes(0.5)], DAY)  # a late word
        expected = {("ada", "elementwise"): 1.5, ("ada", "reduction"): 2.0, ("ada", "linalg"): 4.0}
        assert by_class(accounts) == expected
        assert accounts.class_seconds == expected
        assert by_class(accounts, "2026-11-22") == {("ada", "elementwise"): 0.5, ("ada", "reduction"): 2.0}
        accounts.book([reading(50.0, epoch=3)], DAY)  # of an executor that tells no classes
        assert by_class(accounts) == expected
    with books(tmp_path / "a.sqlite") as accounts:
        assert accounts.class_seconds == expected


def test_books_of_the_version_before_are_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    with books(path) as accounts:
        accounts.book([reading(5.0)], DAY)
    with closing(sqlite3.connect(path)) as db:  # as they were
        db.executescript("DROP TABLE class_meters; DROP TABLE class_usage; PRAGMA user_version = 1")
    with books(path) as accounts:
        accounts.book([Reading(SESSION, 1, Usage(7.0, 0, 0, 0, (1.5, 0.5)))], DAY)
        assert accounts.totals() == {"ada": 7.0}
        assert by_class(accounts) == {("ada", "elementwise"): 1.5, ("ada", "reduction"): 0.5}
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (2,)
