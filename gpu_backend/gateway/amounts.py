"""Amounts of device memory in the gateway's sentences."""

from __future__ import annotations


def memory_in_words(count: int) -> str:
    """Return ``count`` bytes as people say it: "300 MiB", "23.5 GiB", "1,128 GiB"."""
    amount, unit = (count / 2**30, "GiB") if count >= 1 << 30 else (count / 2**20, "MiB")
    return f"{amount:,.0f} {unit}" if amount >= 999.5 else f"{amount:.3g} {unit}"
