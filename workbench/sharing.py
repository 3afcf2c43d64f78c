"""What ``%gpu class`` and ``%gpu usage`` tell: how a notebook shares its device, and what its user has used."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any

import msgspec

from gpu_backend.wire.errors import quoted
from gpu_backend.wire.views import QuotaView, UsageRow, UsageView
from gpu_backend.wire.wish import Wish
from kernelproxy.session.amounts import seconds_in_words
from workbench.display import Facts, Section, bytes_in_words
from workbench.wrong_usage import WrongUsage


class SharingFacts(Facts):
    """How a notebook wants to share its device."""

    title = "Sharing"

    def __init__(self, wish: Wish, is_open: bool) -> None:
        self._wish = wish
        self._is_open = is_open

    def sections(self) -> Sequence[Section]:
        """Return what the notebook asks for."""
        wish = self._wish
        counts = "this session, and those opened later" if self._is_open else "the session to be opened"
        rows = (
            ("class", wish.kind or "the pool's default, interactive unless its operator says otherwise"),
            ("guaranteed part of the device", f"{wish.request:.0%}" if wish.request else "none"),
            ("largest part of the device", f"{wish.limit:.0%}"),
            ("priority", str(wish.priority)),
            *((("device", ", ".join(where)),) if (where := _where(wish)) else ()),
            ("counts for", counts),
        )
        return (Section("Asked for", rows),)

    def to_dict(self) -> dict[str, Any]:
        """Return the same for programs."""
        fields = msgspec.structs.asdict(self._wish)
        return {"class": fields.pop("kind"), **fields}


def _where(wish: Wish) -> list[str]:
    """Return in words where a session wants to be."""
    words = (("beside", wish.affinity), ("apart from", wish.anti_affinity), ("alone with", wish.exclusion))
    return [f"{how} {label!r}" for how, label in words if label] + ["one of its own"] * wish.is_whole


class UsageFacts(Facts):
    """What a user has used of a pool, of the others' use the sum, and the limits that hold for them."""

    title = "Usage"

    def __init__(self, view: UsageView) -> None:
        self._view = view

    def sections(self) -> Sequence[Section]:
        """Return own use, limits, and the others' sum."""
        own = [row for row in self._view.rows if row.user == self._view.user]
        others = [row for row in self._view.rows if row.user != self._view.user]
        parts = [Section(f"You, {self._view.user}", tuple(_row(row) for row in own) or (("nothing yet", ""),))]
        if self._view.quotas:
            shares = {_name(one): min(1.0, one.used / one.limit) for one in self._view.quotas}
            parts.append(Section("Limits", tuple((_name(one), _amount(one)) for one in self._view.quotas), shares))
        seconds = seconds_in_words(sum(row.gpu_seconds for row in others))
        return [*parts, Section("All others", (("GPU time", seconds),))]

    def to_dict(self) -> dict[str, Any]:
        """Return the same for programs."""
        return dict(msgspec.to_builtins(_plain(self._view)))


def since_day(text: str, today: date) -> str:
    """Return the day that ``text`` means, as the pool is asked for it; "" for ever.

    Raises
    ------
    WrongUsage
        If it means none.
    """
    if not text or text == "today":
        return text and today.isoformat()
    back = re.fullmatch(r"(\d{1,5})d", text)
    try:
        return (today - timedelta(days=int(back[1])) if back else date.fromisoformat(text)).isoformat()
    except (ValueError, OverflowError):
        raise WrongUsage(f"{quoted(text)} is no day: write 2026-01-31, 'today', or 7d for a week back.") from None


def _plain(view: UsageView) -> dict[str, Any]:
    return {
        "user": view.user,
        "by": view.by,
        "since": view.since,
        "rows": [msgspec.structs.asdict(row) for row in view.rows],
        "quotas": [msgspec.structs.asdict(one) for one in view.quotas],
    }


def _row(row: UsageRow) -> tuple[str, str]:
    if row.op_class:
        return row.op_class, f"{seconds_in_words(row.gpu_seconds)} of GPU time"
    name = row.day or row.notebook or row.session or "in all"
    moved = bytes_in_words(row.received_bytes + row.sent_bytes)
    time, peak = seconds_in_words(row.gpu_seconds), bytes_in_words(row.peak_bytes)
    return name, f"{time} of GPU time, at most {peak} of memory, {moved} moved"


def _name(quota: QuotaView) -> str:
    return f"{quota.what.removesuffix(' bytes')} ({quota.whose})"


def _amount(quota: QuotaView) -> str:
    if quota.what == "memory bytes":
        return f"{bytes_in_words(int(quota.used))} of {bytes_in_words(int(quota.limit))}"
    return f"{quota.used:,.0f} of {quota.limit:,.0f}"
