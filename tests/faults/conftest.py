"""A pool with real executors, and a neighbour in it who must never notice what happens to others."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gpu_backend.engine.detached import ProcessId
from kernelproxy.settings import ClientSettings, save
from tests.integration.conftest import MakePool, RunningPool, make_pool, until

from .notebook import Neighbour, Notebook

__all__ = ["make_pool"]

GIGABYTE = 1 << 30


class Faulty:
    """A pool and its notebooks."""

    def __init__(self, make: MakePool, directory: Path, **settings: object) -> None:
        usual = {"executor_command": (), "default_memory_bytes": GIGABYTE, "max_sessions_per_user": 0}
        self.pool: RunningPool = make(**{**usual, "sessions_per_device": 32, **settings})
        self.directory = directory
        self._notebooks: list[Notebook] = []

    def config(self, user: str = "ada") -> Path:
        """Return the settings file of ``user``, who is added to the pool if new to it."""
        path = self.directory / f"{user}.toml"
        if not path.exists():
            door = self.pool.ada if user == "ada" else self.pool.add_user(user)
            key = self.pool.state.root / f"{user}.key"
            save(ClientSettings(gateway=door.endpoint, server_key=door.server_key.decode(), key_file=key), path)
        return path

    def notebook(self, user: str = "ada", **environment: str) -> Notebook:
        """Return a notebook of ``user``, which is ended with the test."""
        self._notebooks.append(Notebook(self.config(user), **environment))
        return self._notebooks[-1]

    def end_notebooks(self) -> None:
        while self._notebooks:
            self._notebooks.pop().end()


@pytest.fixture(scope="module")
def faulty(make_pool: MakePool) -> Iterator[Faulty]:
    with tempfile.TemporaryDirectory(prefix="gwb") as directory:
        yield Faulty(make_pool, Path(directory), warm_executors_per_device=2)


@pytest.fixture(scope="module")
def neighbour(faulty: Faulty) -> Iterator[Neighbour]:
    with tempfile.TemporaryDirectory(prefix="gwb") as directory:
        neighbour = Neighbour(faulty.config("bob"), Path(directory))
        yield neighbour
        neighbour.end()


@pytest.fixture(scope="module")
def shared_notebook(faulty: Faulty) -> Iterator[Notebook]:
    with Notebook(faulty.config()) as notebook:
        yield notebook


@pytest.fixture
def undisturbed(neighbour: Neighbour) -> Iterator[None]:
    """The neighbour computes before, during and after what the test does, and everything comes out right."""
    neighbour.goes_on(neighbour.rounds())
    yield
    neighbour.goes_on(neighbour.rounds())


@pytest.fixture
def mine(shared_notebook: Notebook, undisturbed: None) -> Notebook:
    """The notebook to which things happen; one for all tests of a module, for it survives them."""
    shared_notebook.run("1")  # what an earlier test left to be told
    return shared_notebook


@pytest.fixture
def notebook(faulty: Faulty, undisturbed: None) -> Iterator[Callable[..., Notebook]]:
    """Make further notebooks."""
    yield faulty.notebook
    faulty.end_notebooks()


def is_running(pid: int) -> bool:
    return ProcessId.of(pid) is not None


__all__ += ["Faulty", "is_running", "until"]
