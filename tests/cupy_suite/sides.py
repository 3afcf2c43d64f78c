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
from typing import Any, Protocol


class Library(Protocol):
    """What a worker asks of the CuPy under test."""

    #: True when only another process can go on.
    is_lost: bool

    def settle(self) -> None:
        """Wait for the device. Raises what failed late, which would otherwise meet the next test."""

    def renew(self) -> None:
        """Do what a next test needs after one that was broken off."""


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


class Proxy:
    """The remote CuPy, with the ``cupy.testing`` of CuPy's source distribution on top, or with its own."""

    is_lost = False

    def __init__(self, testing: Path | None) -> None:
        import kernelproxy

        kernelproxy.activate()
        sys.meta_path.insert(0, _TestingFinder(testing))
        for name in _PRIVATE:  # they are attributes of their packages before anybody imports them
            importlib.import_module(name)

    def settle(self) -> None:
        """Wait for the executor. One that was lost is replaced."""
        from gpu_backend.wire.errors import OpFailed, PoolError
        from kernelproxy import session

        opened = session.opened_session()
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
        from kernelproxy import session

        opened = session.opened_session()
        session.adopt_session(None)
        if opened is not None:
            with suppress(Exception):  # it is being left because something is wrong with it
                opened.close(release=True)


#: All that ``cupy.testing`` wants of CuPy's private modules: the size of a shape, and a table of random states that it
#: takes away before a test and puts back after it. Some tests name public classes by the module that defines them.
_PRIVATE = {
    "cupy._core": "",
    "cupy._core.internal": "import math\ndef prod(shape): return math.prod(shape)",
    "cupy.random._generator": "_random_states = {}",
    "cupy.random._bit_generator": "from cupy.random import MRG32k3a, Philox4x3210, XORWOW",
}


class _TestingFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds ``cupy.testing`` in a folder, and what it needs beside the public CuPy."""

    def __init__(self, testing: Path | None) -> None:
        self._testing = testing

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the spec of a module that is ours."""
        if fullname in _PRIVATE:
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        if self._testing is not None and fullname == "cupy.testing":
            return importlib.machinery.PathFinder.find_spec(fullname, [str(self._testing.parent)])
        if self._testing is not None and fullname.startswith("cupy.testing."):  # before the proxy's own
            return importlib.machinery.PathFinder.find_spec(fullname, path)
        return None

    def exec_module(self, module: types.ModuleType) -> None:
        """Run the few lines that stand for a private module."""
        exec(_PRIVATE[module.__name__], module.__dict__)
        if module.__name__ == "cupy.random._generator":
            public: Any = sys.modules["cupy.random"]
            reset = public.reset_states

            def reset_states() -> None:
                reset()
                module._random_states = {}  # type: ignore[attr-defined]

            public.reset_states = reset_states
