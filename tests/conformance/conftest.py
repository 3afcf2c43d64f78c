"""What tests of the real op stream share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from gpu_backend.devices import open_device
from kernelproxy.mirror.host_mirror import Mode
from kernelproxy.namespace.names import make
from tests.conformance.in_process import InProcess, mirrored, notebook_on


@pytest.fixture(scope="module", params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def executor(request: pytest.FixtureRequest) -> Iterator[InProcess]:
    """An executor of this process, with a device of each kind."""
    with notebook_on(open_device(request.param)) as one:
        yield one


@pytest.fixture
def cp(executor: InProcess) -> Iterator[Callable[[str], Any]]:
    """Return names of CuPy, for a notebook that remembers."""
    with mirrored(Mode.ON):
        yield lambda name: make(f"cupy.{name}")
