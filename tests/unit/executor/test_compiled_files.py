"""Modules of compiled files: the file is the notebook's, so an executor has a copy of it for a moment."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

from gpu_backend.executor.verbs import Verbs


def test_they_are_loaded_on_every_device_before_the_copy_goes() -> None:
    """CuPy loads one where it is first used, and a program may use it on another device much later."""
    loaded: list[tuple[int, bytes]] = []
    current = [0]

    @contextmanager
    def entered(number: int) -> Iterator[None]:
        before, current[0] = current[0], number
        yield
        current[0] = before

    class Module:
        def __init__(self, path: str) -> None:
            self._path = path

        def compile(self) -> None:
            loaded.append((current[0], Path(self._path).read_bytes()))

    names = {"cupy.RawModule": Module, "cupy.cuda.Device": entered}
    three = SimpleNamespace(count=3, synchronize=None)
    verbs = Verbs(three, names.__getitem__, None)  # type: ignore[arg-type]
    verbs.table[".module_of_file"](b"code")
    assert (loaded, current) == ([(0, b"code"), (1, b"code"), (2, b"code")], [0])
