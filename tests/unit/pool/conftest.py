"""Pools that these tests make leave nothing behind in ``/tmp``."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _own_runtime(runtime_directory: object) -> None:
    """Have each test's pools keep their sockets where only this test does."""
