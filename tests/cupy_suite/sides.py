"""The two CuPys that the tests may meet: the remote one and the native one."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from tests.cupy_suite import private


class Spent(NamedTuple):
    """What a session has cost so far."""

    ops: int = 0
    #: Ops whose answer was waited for.
    round_trips: int = 0


class Library(Protocol):
    """What a worker asks of the CuPy under test."""

    #: True when only another process can go on.
    is_lost: bool

    def settle(self) -> None:
        """Wait for the device. Raises what failed late, which would otherwise meet the next test."""

    def renew(self) -> None:
        """Do what a next test needs after one that was broken off."""

    def spent(self) -> Spent:
        """Return what has been sent and waited for."""


class Native:
    """The CuPy that is installed here."""

    is_lost = False

    def settle(self) -> None:
        """Wait for the device. After a fault in a kernel its context is of no use any more."""
        cuda: Any = importlib.import_module("cupy.cuda")
        try:
            cuda.runtime.deviceSynchronize()
        except cuda.runtime.CUDARuntimeError:
            self.is_lost = True
            raise

    def renew(self) -> None:
        """Do nothing: there is one process and one context."""

    def spent(self) -> Spent:
        """Return nothing: nobody else is asked."""
        return Spent()


class Proxy:
    """The remote CuPy: as it is, or with `private` modules and the ``cupy.testing`` of CuPy's source distribution."""

    is_lost = False

    def __init__(self, testing: Path | None) -> None:
        import kernelproxy

        kernelproxy.activate()
        if testing is not None:
            sys.meta_path.insert(0, _TestingFinder(testing))
            private.install(testing.parents[1])

    def settle(self) -> None:
        """Wait for the executor. One that was lost is replaced."""
        from gpu_backend.wire.errors import OpFailed, PoolError
        from kernelproxy.client import current

        opened = current().opened
        if opened is None:
            return
        try:
            opened.synchronize()
        except OpFailed:
            raise
        except PoolError:
            self.renew()
            raise

    def renew(self) -> None:
        """Leave the session: the next test opens one of its own."""
        from kernelproxy.client import current

        opened = current().opened
        current().adopt(None)
        if opened is not None:
            with suppress(Exception):  # it is being left because something is wrong with it
                opened.close(release=True)

    def spent(self) -> Spent:
        """Return what this session has sent and waited for; what it has not sent yet is not counted."""
        from kernelproxy.client import current

        opened = current().opened
        return Spent() if opened is None else Spent(opened.counters.ops, opened.counters.round_trips)


class _TestingFinder(importlib.abc.MetaPathFinder):
    """Finds ``cupy.testing`` in a folder, before the proxy's own."""

    def __init__(self, testing: Path) -> None:
        self._testing = testing

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the spec of a module of it."""
        if fullname == "cupy.testing":
            return importlib.machinery.PathFinder.find_spec(fullname, [str(self._testing.parent)])
        if fullname.startswith("cupy.testing."):
            return importlib.machinery.PathFinder.find_spec(fullname, path)
        return None
