"""Amounts of memory are read by people: no exponent, however large the device."""

from __future__ import annotations

import pytest

from gpu_backend.gateway.amounts import memory_in_words


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (0, "0 MiB"),
        (300 << 20, "300 MiB"),
        (1023 << 20, "1,023 MiB"),
        (1 << 30, "1 GiB"),
        (25276514304, "23.5 GiB"),
        (999 << 30, "999 GiB"),
        (1128 << 30, "1,128 GiB"),
    ],
)
def test_memory_in_words(count: int, said: str) -> None:
    assert memory_in_words(count) == said
