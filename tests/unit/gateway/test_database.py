"""Files that processes share: readers and the one who writes keep out of each other's way."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from gpu_backend.gateway.database import opened
from gpu_backend.wire.errors import PoolRefusal

STEPS = ("CREATE TABLE seen (what TEXT) STRICT", "ALTER TABLE seen ADD COLUMN note TEXT")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.sqlite"


def test_readers_and_a_writer_at_work_do_not_wait_for_each_other(path: Path) -> None:
    with closing(opened(path, STEPS, "")) as writer:
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("INSERT INTO seen VALUES ('a', '')")
        with closing(opened(path, STEPS, "", is_read_only=True)) as reader:
            assert reader.execute("SELECT * FROM seen").fetchall() == []
            writer.execute("COMMIT")
            assert reader.execute("SELECT what FROM seen").fetchall() == [("a",)]
            with pytest.raises(sqlite3.OperationalError, match="readonly"):
                reader.execute("INSERT INTO seen VALUES ('b', '')")


@pytest.mark.parametrize("is_read_only", [False, True])
def test_what_an_older_version_wrote_grows_and_is_kept(path: Path, is_read_only: bool) -> None:
    with closing(opened(path, STEPS[:1], "")) as db:
        db.execute("INSERT INTO seen VALUES ('a')")
    with closing(opened(path, STEPS, "", is_read_only)) as db:
        assert db.execute("SELECT * FROM seen").fetchall() == [("a", None)]


def test_a_reader_makes_no_file(path: Path) -> None:
    with pytest.raises(PoolRefusal, match="unable to open"):
        opened(path, STEPS, "", is_read_only=True)
    assert not path.exists()
