"""The records: what is saved is there for the next process, however the last one ended."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

import pytest

from gpu_backend.gateway.directory import Directory
from gpu_backend.lifecycle.states import Session, SessionState
from gpu_backend.wire.errors import PoolRefusal

from .killing import last_said

Opened = Callable[[Path], Directory]
SESSION = Session(
    id="s", user="ada", client_key="k", label="ä.ipynb", node="n", ordinal=1, device_kind="cuda",
    memory_limit_bytes=1 << 40, lease_seconds=60.5, opened_at=3.25, state=SessionState.SERVING, epoch=2,
    endpoints=("unix-abstract://h/x", "tls://h:1"), secret="5" * 64, certificate="c" * 64, reason="",
)  # fmt: skip


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "directory.sqlite"


@pytest.fixture
def opened() -> Iterator[Callable[[Path], Directory]]:
    """Open records as often as wanted, as if by several processes."""
    with ExitStack() as stack:

        def open_one(path: Path) -> Directory:
            records = Directory(path)
            stack.callback(records.close)
            return records

        yield open_one


def test_a_session_comes_back_as_it_was_saved(path: Path, opened: Opened) -> None:
    opened(path).save(SESSION)
    assert opened(path).sessions() == [SESSION]
    opened(path).save(replace(SESSION, has_promise=False))
    assert opened(path).sessions() == [replace(SESSION, has_promise=False)]
    opened(path).save(replace(SESSION, others=(3, 1)))
    assert opened(path).sessions() == [replace(SESSION, others=(3, 1))]


def test_saving_again_replaces(path: Path, opened: Opened) -> None:
    records = opened(path)
    records.save(SESSION)
    records.save(replace(SESSION, epoch=3))
    assert [session.epoch for session in records.sessions()] == [3]


def test_closed_sessions_are_kept_apart_and_forgotten_in_time(path: Path, opened: Opened) -> None:
    records = opened(path)
    records.save(replace(SESSION, state=SessionState.CLOSED))
    assert records.sessions() == []
    assert records.closed("s")
    records.forget_closed(before=SESSION.opened_at)
    assert records.closed("s")
    records.forget_closed(before=SESSION.opened_at + 1)
    assert records.closed("s") is None


def test_what_was_dropped_is_told_from_what_the_records_have_never_known(path: Path, opened: Opened) -> None:
    records, at = opened(path), SESSION.opened_at
    records.save(replace(SESSION, id="goes on", opened_at=at - 1))
    records.forget_closed(before=at + 9)
    assert not records.has_dropped(at - 2), "nothing was dropped: the others were lost with the records"
    records.save(replace(SESSION, state=SessionState.CLOSED))
    records.save(replace(SESSION, id="later", state=SessionState.CLOSED, opened_at=at + 5))
    records.forget_closed(before=at + 1)
    assert opened(path).has_dropped(at)
    assert opened(path).has_dropped(at - 2)
    assert not opened(path).has_dropped(at + 1), "it may have been opened after a copy was made that was restored"
    records.forget_closed(before=at + 1)
    assert opened(path).has_dropped(at)
    records.forget_closed(before=at + 9)
    assert opened(path).has_dropped(at + 5)


def test_a_key_means_its_user_until_it_is_revoked(path: Path, opened: Opened) -> None:
    gateway, operator = opened(path), opened(path)  # two processes in life
    operator.add_user("ada", False, 1.0)
    operator.add_key("pub", "ada", "laptop", 2.0)
    user = gateway.user_of("pub")
    assert user is not None
    assert (user.name, user.is_operator) == ("ada", False)
    assert operator.revoke_key("pub", 3.0)
    assert not operator.revoke_key("pub", 4.0)
    assert gateway.user_of("pub") is None
    assert [key.revoked_at for key in gateway.all_keys()] == [3.0]


def test_a_key_has_one_user_for_ever(path: Path, opened: Opened) -> None:
    records = opened(path)
    records.add_user("ada", False, 1.0)
    records.add_user("eve", False, 1.0)
    records.add_key("pub", "ada", "", 2.0)
    records.revoke_key("pub", 3.0)
    with pytest.raises(PoolRefusal, match="for 'ada'"):
        records.add_key("pub", "eve", "", 4.0)
    with pytest.raises(PoolRefusal, match="users add bob"):
        records.add_key("other", "bob", "", 4.0)


def test_a_node_has_one_key(path: Path, opened: Opened) -> None:
    records = opened(path)
    records.set_node("n", "first")
    records.set_node("n", "second")
    assert (records.node_of("first"), records.node_of("second")) == (None, "n")


def test_only_its_owner_reads_the_file(path: Path, opened: Opened) -> None:
    opened(path).save(SESSION)
    assert path.stat().st_mode & 0o077 == 0


def test_a_damaged_file_is_refused_with_a_way_out(path: Path, opened: Opened) -> None:
    path.write_bytes(b"not a database, but long enough to look like one" * 100)
    with pytest.raises(PoolRefusal, match="Move the file away"):
        opened(path)


def test_records_of_a_newer_version_are_left_alone(path: Path, opened: Opened) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 99")
    with pytest.raises(PoolRefusal, match="newer version"):
        opened(path)


WRITER = """
import sys
from dataclasses import replace
from pathlib import Path
sys.path[:0] = sys.argv[2:]
from tests.unit.gateway.test_directory import SESSION
from gpu_backend.gateway.directory import Directory
records = Directory(Path(sys.argv[1]))
for epoch in range(1, 100_000):
    records.save(replace(SESSION, epoch=epoch))
    print(epoch, flush=True)
"""


def test_a_kill_loses_nothing_that_was_saved(path: Path, opened: Opened) -> None:
    last = last_said(WRITER, str(path), str(Path(__file__).parents[3]), kill_at=200)
    epoch = opened(path).sessions()[0].epoch
    assert epoch in (last, last + 1)


def test_what_an_older_version_recorded_beyond_all_bounds_is_read_as_the_most_that_can_be(
    path: Path, opened: Opened
) -> None:
    records = opened(path)
    for what, value in (("highest_priority", 10**20), ("memory_bytes", 10**30), ("largest_class", "production")):
        records.entitle("user", "ada", what, value)
    found = opened(path).entitlements()["user", "ada"]
    assert found == {"highest_priority": 1_000_000, "memory_bytes": 1 << 50, "largest_class": "production"}
