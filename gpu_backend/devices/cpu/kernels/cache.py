"""Compiled kernels on disk, one shared object a file, shared by all executors of a user.

A file is named by the digest of all that its code depends on, written to a temporary name and moved into place, so that
a reader sees a whole file or none. A lock file makes processes that want the same kernel wait for the one that compiles
it. Because loading a file runs its code, the directory must belong to this user and be writable by nobody else.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

#: The oldest files go when a directory holds more than this; at some 50 kB each, about 200 MB.
MAX_FILES = 4096


def default_directory() -> Path:
    """Return where kernels are kept when nobody says otherwise.

    ``$GPU_WORKBENCH_KERNEL_CACHE``, else ``$CUPY_CACHE_DIR``, else ``gpu-workbench/kernels`` in the user's cache.
    """
    for variable in ("GPU_WORKBENCH_KERNEL_CACHE", "CUPY_CACHE_DIR"):
        if value := os.environ.get(variable):
            return Path(value).expanduser()
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "gpu-workbench" / "kernels"


class KernelCache:
    """A private directory of shared objects.

    Parameters
    ----------
    directory
        Made with mode 0700 if it does not exist.

    Raises
    ------
    PermissionError
        If the directory belongs to another user or others may write to it.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = directory.stat()
        if status.st_uid != os.geteuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise PermissionError(
                f"The kernel cache {directory} may be changed by other users, and its files are run as code: "
                f"'chmod 700' it as its owner, or choose another with GPU_WORKBENCH_KERNEL_CACHE."
            )

    def path(self, digest: str) -> Path:
        """Return where the kernel ``digest`` is or would be."""
        return self.directory / f"{digest}.so"

    def get(self, digest: str, build: Callable[[Path], None]) -> Path:
        """Return the file of the kernel ``digest``, made by ``build`` if it is not there.

        ``build`` is given a path to write to. Of several processes that ask at the same time, one builds.
        """
        path = self.path(digest)
        with contextlib.suppress(FileNotFoundError):
            path.stat()  # an executor's sandbox lets `utime` seem to succeed whatever there is
            os.utime(path)  # so that the oldest are those that nobody uses
            return path
        with self._lock(digest):
            if not path.exists():
                self._build(path, build)
        return path

    def discard(self, digest: str) -> None:
        """Forget the kernel ``digest``, whose file turned out to be unusable."""
        self.path(digest).unlink(missing_ok=True)

    def _build(self, path: Path, build: Callable[[Path], None]) -> None:
        descriptor, name = tempfile.mkstemp(dir=self.directory, prefix=".building-", suffix=".so")
        os.close(descriptor)
        try:
            build(Path(name))
            os.replace(name, path)
        except BaseException:
            # Whatever stopped the build, an interrupt included, no half-made file stays behind.
            Path(name).unlink(missing_ok=True)
            raise
        self._prune()

    @contextlib.contextmanager
    def _lock(self, digest: str) -> Iterator[None]:
        # 256 lock files for all kernels: two kernels that share one merely wait for each other.
        descriptor = os.open(self.directory / f".lock-{digest[:2]}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _prune(self) -> None:
        kernels = list(self.directory.glob("*.so"))
        if len(kernels) <= MAX_FILES:
            return
        aged = []
        for path in kernels:
            with contextlib.suppress(FileNotFoundError):  # another process prunes, too
                aged.append((path.stat().st_mtime, path))
        for _, path in sorted(aged)[: len(aged) - MAX_FILES * 3 // 4]:
            path.unlink(missing_ok=True)
