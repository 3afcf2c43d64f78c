"""Compiled kernels of users: copied in, copied back, and nothing but kernels, for nobody but their user."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from gpu_backend.node import kernel_cache
from gpu_backend.node.kernel_cache import UserCache

A, B, C = ("a" * 40, "b" * 40, "c" * 40)


@pytest.fixture
def mine(tmp_path: Path) -> UserCache:
    return UserCache(tmp_path / "kept", "mia")


def executor(tmp_path: Path, name: str, cache: UserCache) -> tuple[Path, Path]:
    """Return the directory of an executor that was filled from ``cache``, and the folder of its kernels."""
    directory = tmp_path / name
    kernels = directory / "own" / "cache"
    for kind in ("cpu", "cupy"):
        (kernels / kind).mkdir(parents=True)
    cache.fill(directory)
    return directory, kernels


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*") if path.is_file() or path.is_symlink()}


def test_what_one_session_compiled_the_next_of_its_user_finds(tmp_path: Path, mine: UserCache) -> None:
    first, kernels = executor(tmp_path, "1", mine)
    (kernels / "cpu" / f"{A}.so").write_bytes(b"code")
    (kernels / "cupy" / f"{B}.cubin").write_bytes(b"more")
    assert mine.harvest(first) == 2
    second, found = executor(tmp_path, "2", mine)
    assert names(found) == {f"{A}.so", f"{B}.cubin"}
    assert (found / "cpu" / f"{A}.so").read_bytes() == b"code"
    assert (found / "cupy" / f"{B}.cubin").stat().st_mode & 0o777 == 0o600
    assert mine.harvest(second) == 0  # nothing new


def test_another_user_finds_nothing(tmp_path: Path, mine: UserCache) -> None:
    first, kernels = executor(tmp_path, "1", mine)
    (kernels / "cpu" / f"{A}.so").write_bytes(b"code")
    mine.harvest(first)
    _, found = executor(tmp_path, "2", UserCache(tmp_path / "kept", "noah"))
    assert names(found) == set()


def test_a_namesake_finds_nothing_where_nobody_removed_what_was_kept(tmp_path: Path) -> None:
    base = tmp_path / "kept"
    former = UserCache(base, "mia", "1.5")
    first, kernels = executor(tmp_path, "1", former)
    late, late_kernels = executor(tmp_path, "2", former)
    (kernels / "cpu" / f"{A}.so").write_bytes(b"code")
    assert former.harvest(first) == 1
    namesake = UserCache(base, "mia", "2.5")
    third, found = executor(tmp_path, "3", namesake)
    assert names(found) == set()
    (late_kernels / "cpu" / f"{B}.so").write_bytes(b"code of one that still ends")
    assert former.harvest(late) == 0
    (found / "cpu" / f"{C}.so").write_bytes(b"code")
    assert namesake.harvest(third) == 1
    _, again = executor(tmp_path, "4", UserCache(base, "mia", "2.5"))
    assert names(again) == {f"{C}.so"}
    _, unknown = executor(tmp_path, "5", UserCache(base, "mia"))  # an order of an older gateway
    assert names(unknown) == {f"{C}.so"}


def test_a_name_that_is_given_again_finds_nothing_of_its_namesake(tmp_path: Path, mine: UserCache) -> None:
    first, kernels = executor(tmp_path, "1", mine)
    late, late_kernels = executor(tmp_path, "2", mine)
    (kernels / "cpu" / f"{A}.so").write_bytes(b"code")
    (late_kernels / "cpu" / f"{B}.so").write_bytes(b"code of one that still ends")
    mine.harvest(first)
    mine.remove()
    assert mine.harvest(late) == 0  # nobody of that name
    namesake, found = executor(tmp_path, "3", UserCache(tmp_path / "kept", "mia"))
    assert mine.harvest(late) == 0  # somebody else of that name
    assert names(found) == names(mine.folder) == set()
    (found / "cpu" / f"{C}.so").write_bytes(b"her own")
    assert mine.harvest(namesake) == 1


def test_who_has_nothing_can_be_removed(tmp_path: Path, mine: UserCache) -> None:
    mine.remove()
    assert names(tmp_path) == set()


@pytest.mark.parametrize("user", ["../mia", "a/b", "", ".", "\udcff", "x" * 4000])
def test_no_name_of_a_user_leads_elsewhere(tmp_path: Path, user: str) -> None:
    folder = UserCache(tmp_path, user).folder
    assert folder.parent == tmp_path / "users"
    assert len(folder.name) == 40


def test_an_executor_has_copies_that_are_its_own(tmp_path: Path, mine: UserCache) -> None:
    first, kernels = executor(tmp_path, "1", mine)
    (kernels / "cpu" / f"{A}.so").write_bytes(b"code")
    mine.harvest(first)
    _, found = executor(tmp_path, "2", mine)
    (found / "cpu" / f"{A}.so").write_bytes(b"evil")
    assert (mine.folder / "cpu" / f"{A}.so").read_bytes() == b"code"


def test_what_is_no_kernel_is_left_behind(tmp_path: Path, mine: UserCache) -> None:
    directory, kernels = executor(tmp_path, "1", mine)
    secret = tmp_path / "operator.key"
    secret.write_bytes(b"secret")
    cpu = kernels / "cpu"
    (cpu / f"{A}.so").symlink_to(secret)
    os.link(secret, cpu / f"{B}.so")
    os.mkfifo(cpu / f"{C}.so")
    (cpu / ("d" * 40 + ".so")).mkdir()
    for name in (
        "x.so",
        f"{'E' * 40}.so",
        f"{'e' * 40}.cubin",
        f"{'e' * 40}.so.bak",
        ".building-1.so",
        f"{'e' * 40}.so\n",
    ):
        (cpu / name).write_bytes(b"code")
    (cpu / ("f" * 40 + ".so")).write_bytes(b"")
    assert mine.harvest(directory) == 0
    assert names(mine.folder) == set()


def test_folders_that_lead_elsewhere_are_not_followed(tmp_path: Path, mine: UserCache) -> None:
    other = UserCache(tmp_path / "kept", "noah")
    theirs, kernels = executor(tmp_path, "1", other)
    (kernels / "cpu" / f"{A}.so").write_bytes(b"noah's")
    other.harvest(theirs)
    directory = tmp_path / "2"
    (directory / "own").mkdir(parents=True)
    (directory / "own" / "cache").symlink_to(other.folder)
    assert mine.fill(directory) == 0
    assert mine.harvest(directory) == 0
    (directory / "own" / "cache").unlink()
    (directory / "own" / "cache").mkdir()
    (directory / "own" / "cache" / "cpu").symlink_to(other.folder / "cpu")
    assert mine.harvest(directory) == 0
    assert names(mine.folder) == set()


def test_size_and_number_are_bounded_and_the_newest_come_first(
    tmp_path: Path, mine: UserCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel_cache, "_MOST_FILE_BYTES", 100)
    monkeypatch.setattr(kernel_cache, "_MOST_COPIED_BYTES", 250)
    monkeypatch.setattr(kernel_cache, "_MOST_KEPT_BYTES", 300)
    directory, kernels = executor(tmp_path, "1", mine)
    (kernels / "cpu" / f"{A}.so").write_bytes(b"x" * 101)
    for age, letter in enumerate("bcde"):
        path = kernels / "cpu" / f"{letter * 40}.so"
        path.write_bytes(letter.encode() * 100)
        os.utime(path, (1_000_000 - age, 1_000_000 - age))
    assert mine.harvest(directory) == 2
    assert names(mine.folder) == {f"{B}.so", f"{C}.so"}
    later, fresh = executor(tmp_path, "2", mine)
    for letter in "fg01":
        (fresh / "cpu" / f"{letter * 40}.so").write_bytes(letter.encode() * 90)
    mine.harvest(later)
    assert sum(path.stat().st_size for path in mine.folder.rglob("*.so")) <= 300
    assert f"{C}.so" not in names(mine.folder)


def test_what_was_used_stays_longer(tmp_path: Path, mine: UserCache) -> None:
    first, kernels = executor(tmp_path, "1", mine)
    for name in (A, B):
        (kernels / "cpu" / f"{name}.so").write_bytes(name.encode())
        os.utime(kernels / "cpu" / f"{name}.so", (1_000_000, 1_000_000))
    mine.harvest(first)
    second, found = executor(tmp_path, "2", mine)
    os.utime(found / "cpu" / f"{B}.so")
    mine.harvest(second)
    assert (mine.folder / "cpu" / f"{B}.so").stat().st_mtime > (mine.folder / "cpu" / f"{A}.so").stat().st_mtime


def test_a_kernel_that_was_made_anew_replaces_the_old_one(tmp_path: Path, mine: UserCache) -> None:
    for number, content in enumerate((b"torn", b"whole", b"WHOLE")):
        directory, kernels = executor(tmp_path, str(number), mine)
        (kernels / "cpu" / f"{A}.so").write_bytes(content)
        mine.harvest(directory)
        assert (mine.folder / "cpu" / f"{A}.so").read_bytes() == content


def test_several_executors_of_a_user_at_once(tmp_path: Path, mine: UserCache) -> None:
    contents = {number: bytes([number]) * 10_000 for number in range(8)}
    made = [executor(tmp_path, str(number), mine) for number in contents]
    for number, (_, kernels) in enumerate(made):
        (kernels / "cpu" / f"{A}.so").write_bytes(contents[number])
    threads = [threading.Thread(target=mine.harvest, args=(directory,)) for directory, _ in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (mine.folder / "cpu" / f"{A}.so").read_bytes() in contents.values()
    assert names(mine.folder) == {f"{A}.so"}


def test_a_full_disk_ends_nothing(
    tmp_path: Path, mine: UserCache, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    directory, kernels = executor(tmp_path, "1", mine)
    (kernels / "cpu" / f"{A}.so").write_bytes(b"code")

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "rename", full)
    assert mine.harvest(directory) == 0
    assert "No space left" in caplog.text
    assert names(mine.folder) == set()
