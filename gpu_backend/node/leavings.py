"""What executors leave in the folder that they may write, looked at and removed as something hostile.

Nothing in it is followed, waited for or gone into without end: folders may be nested by the thousand and closed to
their owner, and files be as many as there is room for.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path

__all__ = ["MAX_BYTES", "MAX_ENTRIES", "held", "held_unnamed", "remove"]

#: What an executor may hold in its folder, beyond which its agent ends it.
MAX_BYTES, MAX_ENTRIES = 4 << 30, 20_000
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def held(folder: Path) -> tuple[int, int]:
    """Return how many bytes and entries there are below ``folder``, up to about `MAX_ENTRIES`; closed folders count."""
    held_bytes = entries = 0
    waiting = [str(folder)]
    while waiting and entries <= MAX_ENTRIES:
        with suppress(OSError), os.scandir(waiting.pop()) as listed:
            for one in listed:
                entries += 1
                if entries > MAX_ENTRIES:
                    break
                with suppress(OSError):
                    held_bytes += one.stat(follow_symlinks=False).st_blocks * 512
                    if one.is_dir(follow_symlinks=False):
                        waiting.append(one.path)
    return held_bytes, entries


def held_unnamed(folder: Path, processes: Iterable[int]) -> int:
    """Return how many bytes files hold on the disk of ``folder`` that ``processes`` have open and that have no name.

    The memory that processes share is such files as well, on no disk. What a process lets nobody see is not counted.
    Who has more than `MAX_ENTRIES` files open holds too much: it would take long to look at all.
    """
    held_bytes: dict[int, int] = {}
    with suppress(OSError):
        disk = folder.stat().st_dev
        for looked, status in enumerate(_open_files(processes)):
            if looked > MAX_ENTRIES:
                return MAX_BYTES + 1
            if status.st_dev == disk and not status.st_nlink:
                held_bytes[status.st_ino] = status.st_blocks * 512
    return sum(held_bytes.values())


def _open_files(processes: Iterable[int]) -> Iterator[os.stat_result]:
    for process in processes:
        with suppress(OSError), os.scandir(f"/proc/{process}/fd") as descriptors:
            for one in descriptors:
                with suppress(OSError):
                    yield one.stat()


def remove(folder: Path) -> None:
    """Remove ``folder`` and all in it, if there is such a folder. Only call it once nobody can write there any more."""
    with suppress(OSError):
        descriptor = os.open(folder, _FOLDER)
        try:
            _empty(descriptor)
        finally:
            os.close(descriptor)
        folder.rmdir()


def _empty(folder: int) -> None:
    """Remove all in ``folder``. What lies in a folder is moved up first, so that no depth is too deep."""
    fresh = (f"moved-{number}" for number in count())
    names = os.listdir(folder)
    while names:
        for name in names:
            _remove_one(folder, name, fresh)
        before, names = names, os.listdir(folder)
        if set(names) == set(before):
            return  # nothing of it can be removed


def _remove_one(top: int, name: str, fresh: Iterator[str]) -> None:
    with suppress(OSError):
        if not _is_folder(top, name):
            os.unlink(name, dir_fd=top)
            return
        os.chmod(name, 0o700, dir_fd=top)
        inner = os.open(name, _FOLDER, dir_fd=top)
        try:
            for one in os.listdir(inner):
                if _is_folder(inner, one):
                    _move_up(inner, one, top, fresh)
                else:
                    with suppress(OSError):
                        os.unlink(one, dir_fd=inner)
        finally:
            os.close(inner)
        os.rmdir(name, dir_fd=top)


def _move_up(inner: int, name: str, top: int, fresh: Iterator[str]) -> None:
    os.chmod(name, 0o700, dir_fd=inner)  # a folder that its owner cannot write cannot be moved
    for other in fresh:
        try:
            os.mkdir(other, 0o700, dir_fd=top)
        except FileExistsError:  # one of that name must not be lost
            continue
        os.rename(name, other, src_dir_fd=inner, dst_dir_fd=top)
        return


def _is_folder(folder: int, name: str) -> bool:
    status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    return (status.st_mode & 0o170000) == 0o040000
