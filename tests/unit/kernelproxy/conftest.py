"""What tests of the client share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kernelproxy import compiled


@pytest.fixture(params=[False, True], ids=["python", "compiled"])
def both_ways(request: pytest.FixtureRequest) -> Iterator[None]:
    """Have the test go the Python ways and, where there is one, those of the compiled core."""
    with compiled.used(request.param):
        yield
