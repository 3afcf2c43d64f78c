"""Amounts of memory are read by people: no exponent, however large the device."""

from __future__ import annotations

import pytest

from gpu_backend.gateway.amounts import gib


@pytest.mark.parametrize(
    ("count", "said"),
    [(0, "0 GiB"), (1 << 28, "0.25 GiB"), (25276514304, "23.5 GiB"), (999 << 30, "999 GiB"), (1128 << 30, "1,128 GiB")],
)
def test_gib(count: int, said: str) -> None:
    assert gib(count) == said
