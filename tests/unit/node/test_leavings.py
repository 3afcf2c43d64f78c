"""What a hostile executor leaves in its folder: counted without end in sight, and removed whatever it is."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE

import pytest

from gpu_backend.engine.detached import ProcessId, write_identity
from gpu_backend.engine.process_sessions import numbers_in
from gpu_backend.executor.config import OWN, PROCESS
from gpu_backend.node import launcher, leavings


def nest(folder: Path, depth: int) -> None:
    """Nest folders deeper than a path can name or a process can hold open."""
    descriptor = os.open(folder, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d", dir_fd=descriptor)
        inner = os.open("d", os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = inner
    os.close(os.open("leaf", os.O_CREAT | os.O_WRONLY, dir_fd=descriptor))
    os.close(descriptor)


def test_all_is_removed_and_nothing_beside_it(tmp_path: Path) -> None:
    beside = tmp_path / "beside"
    beside.mkdir()
    (beside / "kept").write_text("kept")
    own = tmp_path / "own"
    own.mkdir()
    nest(own, 3_000)
    (own / "link").symlink_to(beside)
    (own / "dangling").symlink_to("/nowhere")
    os.mkfifo(own / "pipe")
    (own / "moved-0").mkdir()
    (own / "moved-0" / "file").write_text("x")
    closed = own / "closed"
    (closed / "inner").mkdir(parents=True)
    (closed / "inner" / "file").write_text("x")
    (closed / "inner").chmod(0)
    closed.chmod(0)
    leavings.remove(own)
    assert not own.exists()
    assert (beside / "kept").read_text() == "kept"


def test_a_link_in_the_folders_place_is_left_alone(tmp_path: Path) -> None:
    beside = tmp_path / "beside"
    beside.mkdir()
    (beside / "kept").write_text("kept")
    (tmp_path / "own").symlink_to(beside)
    leavings.remove(tmp_path / "own")
    leavings.remove(tmp_path / "nothing")
    assert (beside / "kept").exists()


def test_what_is_held_is_counted_as_it_lies_on_the_disk(tmp_path: Path) -> None:
    (tmp_path / "full").write_bytes(b"x" * (1 << 20))
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(1 << 40)
    (tmp_path / "link").symlink_to("/usr")
    held_bytes, entries = leavings.held(tmp_path)
    assert entries == 3
    assert 1 << 20 <= held_bytes < 2 << 20
    assert leavings.held(tmp_path / "nothing") == (0, 0)


def test_counting_ends(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    nest(own, 3_000)  # of which the paths are too long at some depth
    _, entries = leavings.held(own)
    leavings.remove(own)  # pytest could not
    assert 1_000 < entries <= leavings.MAX_ENTRIES


#: A process that holds a megabyte without a name twice over, one that has a name, and as much of shared memory.
HOLDING = """
import os
held = open("gone", "wb")
held.write(bytes(1 << 20)); held.flush(); os.remove("gone"); os.dup(held.fileno())
named = open("named", "wb"); named.write(bytes(1 << 20)); named.flush()
os.write(os.memfd_create("shared"), bytes(1 << 20))
print("ready", flush=True)
input()
"""


@contextmanager
def holding(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Have such a process, which leads a session."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDING], cwd=folder, start_new_session=True, text=True, stdin=PIPE, stdout=PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process


def test_files_without_a_name_are_counted_once_and_only_those_of_the_disk(tmp_path: Path) -> None:
    with holding(tmp_path) as process:
        assert 1 << 20 <= leavings.held_unnamed(tmp_path, numbers_in(process.pid)) < 2 << 20
        assert 1 << 20 <= leavings.held(tmp_path)[0] < 2 << 20
        assert process.pid not in numbers_in(os.getsid(0))
    assert leavings.held_unnamed(tmp_path, [process.pid]) == 0
    assert leavings.held_unnamed(tmp_path / "nothing", [os.getpid()]) == 0


def test_an_executor_is_too_large_by_files_that_it_has_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / OWN
    own.mkdir()
    monkeypatch.setattr(leavings, "MAX_BYTES", 3 << 19)  # more than what has a name
    with holding(own) as process:
        assert not launcher.is_too_large(tmp_path), "nobody knows its process"
        identity = ProcessId.of(process.pid)
        assert identity is not None
        write_identity(tmp_path / PROCESS, identity)
        assert launcher.is_too_large(tmp_path)


def test_who_has_too_many_files_open_holds_too_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To look at all of them would take as long as who is looked at wants."""
    monkeypatch.setattr(leavings, "MAX_ENTRIES", 100)
    others = iter(range(1_000_000))  # as many processes as anybody likes
    assert leavings.held_unnamed(tmp_path, (os.getpid() for _ in others)) > leavings.MAX_BYTES
    assert next(others) < 200
