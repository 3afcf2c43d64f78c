"""What tests of the client share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from kernelproxy import compiled
from kernelproxy.client import Client, current
from tests.unit.kernelproxy.played import PlayedExecutor


@contextmanager
def played_client() -> Iterator[Client]:
    """Give the process's client an executor that is played."""
    played: Any = SimpleNamespace(pipeline=PlayedExecutor().pipeline())
    before = current()._opened
    current().adopt(played)
    yield current()
    current()._use(before)


@pytest.fixture(params=[False, True], ids=["python", "compiled"])
def both_ways(request: pytest.FixtureRequest) -> Iterator[None]:
    """Have the test go the Python ways and, where there is one, those of the compiled core."""
    with compiled.used(request.param):
        yield
