"""Amounts of device memory in the gateway's sentences."""

from __future__ import annotations


def gib(count: int) -> str:
    """Return ``count`` bytes in GiB, as people say it: "23.5 GiB", "1,128 GiB"."""
    amount = count / 2**30
    return f"{amount:,.0f} GiB" if amount >= 999.5 else f"{amount:.3g} GiB"
