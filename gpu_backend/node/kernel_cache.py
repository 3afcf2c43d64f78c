"""Compiled kernels of each user, kept between sessions: copied into an executor, and what is new copied back.

Loading a compiled kernel runs its code, and an executor runs the code of its user. So no two users share a file, nor an
executor the file that another will load: each has copies in a folder of its own, and what an executor leaves behind is
read as something hostile, by name, kind and size, and kept for nobody but its own user. A name that is given again is
another user's: what a removed user's last executors leave is kept for nobody.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from gpu_backend.executor.config import OWN

log = logging.getLogger("node.kernel_cache")

#: Folders of compiled kernels, and the names of their files: the CPU device's, and CuPy's.
_NAMES = {"cpu": re.compile(r"[0-9a-f]{40}\.so"), "cupy": re.compile(r"[0-9a-f]{40}\.(?:cubin|ltoir)")}
#: Where an executor has its own, below its directory.
_PATH = (OWN, "cache")
#: In the directory of an executor that was filled: the life of the cache that it was filled from.
_NOTE = "kernels"
#: Most bytes of one file, and of what is copied into an executor or back, and most files.
_MOST_FILE_BYTES, _MOST_COPIED_BYTES, _MOST_COPIED_FILES = 32 << 20, 64 << 20, 4_096
#: Most bytes that are kept of one user; beyond that those go that were not used for longest.
_MOST_KEPT_BYTES = 256 << 20
#: A file that a copy was written to, and whose writer was killed, is swept away after this long, seconds.
_STALE_SECONDS = 3_600.0


class _Entry(NamedTuple):
    used: int  #: when it was last written or used, nanoseconds
    name: str
    size: int


class UserCache:
    """The compiled kernels of one user.

    Parameters
    ----------
    base
        Where those of all users are; nobody but this account may get there.
    user
        The user's name. It need not be one that a file can have.
    since
        What tells the user from one who had the name before: what is kept of that one is removed. Needed where nobody
        removes it when the user is removed, as on a machine that is not the pool's head. Has no hyphen.
    """

    def __init__(self, base: Path, user: str, since: str = "") -> None:
        self._since = since
        self.folder = base / "users" / hashlib.sha256(os.fsencode(user)).hexdigest()[:40]
        #: A link that leads nowhere and says which life this is: a removed user's name may be given to another.
        self._life = self.folder.with_suffix(".life")

    def fill(self, directory: Path) -> int:
        """Copy the newest kernels into the executor of ``directory``; return how many. What fails is logged."""
        try:
            self._forget_namesake()
            for kind in _NAMES:
                self.folder.joinpath(kind).mkdir(mode=0o700, parents=True, exist_ok=True)
            directory.joinpath(_NOTE).write_text(self._begun())
        except OSError as error:
            log.warning("compiled kernels of %s will not be kept: %s", directory, error)
        return self._between(directory, self._fill)

    def harvest(self, directory: Path) -> int:
        """Keep what the executor of ``directory``, which was filled, compiled; return how many. What fails is logged.

        Nothing is kept if the user was removed meanwhile.
        """
        try:
            is_the_same = directory.joinpath(_NOTE).read_text() == os.readlink(self._life)
        except OSError:  # it was never filled, or there is no such user any more
            return 0
        return self._between(directory, self._harvest) if is_the_same else 0

    def remove(self) -> None:
        """Remove all that is kept of the user, and keep nothing of executors that still run."""
        gone = self.folder.with_name(f".{secrets.token_hex(8)}")
        with suppress(FileNotFoundError):
            self.folder.rename(gone)
        self._life.unlink(missing_ok=True)
        shutil.rmtree(gone, ignore_errors=True)

    def _forget_namesake(self) -> None:
        with suppress(FileNotFoundError):
            since, hyphen, _ = os.readlink(self._life).partition("-")
            if hyphen and self._since and since != self._since:
                self.remove()

    def _begun(self) -> str:
        with suppress(FileExistsError):
            os.symlink(f"{self._since}-{secrets.token_hex(8)}" if self._since else secrets.token_hex(8), self._life)
        return os.readlink(self._life)

    def _between(self, directory: Path, copy: Callable[[str, int, int], int]) -> int:
        done = 0
        for kind in _NAMES:
            try:
                with _opened(self.folder / kind) as kept, _opened(directory, *_PATH, kind) as own:
                    done += copy(kind, kept, own)
            except FileNotFoundError:
                continue  # it has none of that kind, or its user was removed just now
            except OSError as error:
                log.warning("compiled kernels of %s were not copied: %s", directory, error)
        return done

    def _fill(self, kind: str, kept: int, own: int) -> int:
        done = 0
        for entry in _within(_entries(kept, kind)):
            content = _read(kept, entry.name)
            if content is not None:
                _write(own, entry.name, content, entry.used)
                done += 1
        return done

    def _harvest(self, kind: str, kept: int, own: int) -> int:
        before = {entry.name: entry for entry in _entries(kept, kind)}
        done = 0
        for entry in _within(_entries(own, kind)):
            known = before.get(entry.name)
            if known is not None and (known.used, known.size) == (entry.used, entry.size):
                continue  # as it was filled in, and not used
            content = _read(own, entry.name)
            if content is None:
                continue
            used = min(entry.used, time.time_ns())
            if known is not None and content == _read(kept, entry.name):
                os.utime(entry.name, ns=(used, used), dir_fd=kept, follow_symlinks=False)
            else:
                _write(kept, entry.name, content, used)
                done += 1
        _trim(kept, kind)
        return done


@contextmanager
def _opened(base: Path, *parts: str) -> Iterator[int]:
    """Open a folder below ``base`` without following a link on the way."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(base, flags)
    try:
        for part in parts:
            inner = os.open(part, flags, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = inner
        yield descriptor
    finally:
        os.close(descriptor)


def _entries(folder: int, kind: str) -> list[_Entry]:
    """Return the kernels in ``folder``, those first that were used last. What is none of them is passed over."""
    found = []
    with os.scandir(folder) as listed:
        for count, one in enumerate(listed):
            if count >= 4 * _MOST_COPIED_FILES:
                break  # whoever leaves more has no claim to have all looked at
            if _NAMES[kind].fullmatch(one.name):
                with suppress(OSError):
                    status = one.stat(follow_symlinks=False)
                    found.append(_Entry(status.st_mtime_ns, one.name, status.st_size))
    return sorted(found, reverse=True)


def _within(entries: list[_Entry]) -> Iterator[_Entry]:
    left = _MOST_COPIED_BYTES
    for entry in entries[:_MOST_COPIED_FILES]:
        if 0 < entry.size <= min(left, _MOST_FILE_BYTES):
            left -= entry.size
            yield entry


def _read(folder: int, name: str) -> bytes | None:
    """Return the contents of a file that is plain, has one name and is not too large; None of any other."""
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(file.fileno())
        is_plain = stat.S_ISREG(status.st_mode) and status.st_nlink == 1 and status.st_uid == os.geteuid()
        if not is_plain or status.st_size > _MOST_FILE_BYTES:
            return None
        content = file.read(_MOST_FILE_BYTES + 1)
        return content if 0 < len(content) <= _MOST_FILE_BYTES else None


def _write(folder: int, name: str, content: bytes, used: int) -> None:
    """Write a file all at once, so that who reads it meanwhile has the whole one before or after."""
    fresh = f".{name}.{os.getpid()}.{time.monotonic_ns()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(fresh, flags, 0o600, dir_fd=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        os.utime(fresh, ns=(used, used), dir_fd=folder, follow_symlinks=False)
        os.rename(fresh, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        with suppress(OSError):
            os.unlink(fresh, dir_fd=folder)
        raise


def _trim(folder: int, kind: str) -> None:
    left = _MOST_KEPT_BYTES
    for place, entry in enumerate(_entries(folder, kind)):
        left -= entry.size
        if left < 0 or place >= _MOST_COPIED_FILES:
            with suppress(OSError):
                os.unlink(entry.name, dir_fd=folder)
    oldest = time.time() - _STALE_SECONDS
    for name in os.listdir(folder):
        with suppress(OSError):
            if name.startswith(".") and os.stat(name, dir_fd=folder, follow_symlinks=False).st_mtime < oldest:
                os.unlink(name, dir_fd=folder)
