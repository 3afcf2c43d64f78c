"""What tests of the real op stream share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gpu_backend.devices import open_device
from tests.conformance.in_process import InProcess, notebook_on


@pytest.fixture(scope="module", params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def executor(request: pytest.FixtureRequest) -> Iterator[InProcess]:
    """An executor of this process, with a device of each kind."""
    with notebook_on(open_device(request.param)) as one:
        yield one
