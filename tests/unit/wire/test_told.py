"""What a pool tells: no word of it is obeyed by a terminal, no figure of it makes the notebook fail."""

from __future__ import annotations

from math import inf, nan

import pytest

from gpu_backend.wire.control import Denied, Queued
from gpu_backend.wire.errors import ErrorRecord, MalformedMessage
from gpu_backend.wire.figures import MOST
from gpu_backend.wire.messages import Welcome
from gpu_backend.wire.told import fit_answer, fit_words
from gpu_backend.wire.views import PoolView, QuotaView, UsageView, WaiterView

ESCAPES = "\x1b]0;pwned\x07\x1b[2J"


def test_what_is_fit_stays_as_it_is() -> None:
    view = PoolView(1, "größe", "1", "ada", 1.7e9, (), (), (WaiterView(1, "eve", "a.ipynb", 0.5, False),))
    assert fit_answer(view) is view
    denied = Denied(1, "quota", "first\n\tsecond")
    assert fit_answer(denied) is not None
    assert fit_answer(denied) == denied


def test_words_are_printable_however_deep() -> None:
    view = PoolView(1, ESCAPES, "1", "ada", 0.0, (), (), (WaiterView(1, f"eve{ESCAPES}", "", 0.5, False),))
    fit = fit_answer(view)
    assert fit.pool == " ]0;pwned  [2J"
    assert fit.waiting[0].user == "eve ]0;pwned  [2J"
    assert len(fit_answer(Denied(1, "quota", "x" * 1_000_000)).message) == 100_000


def test_what_is_nested_too_deep_is_no_message() -> None:
    device: object = "x"
    for _ in range(2_000):
        device = {"more": device}
    with pytest.raises(MalformedMessage, match="nested"):
        fit_words(Welcome(0, 1, 1, 1, 0, {"deep": device}))


@pytest.mark.parametrize(("told", "fit"), [(nan, 0), (inf, MOST), (-inf, -MOST), (1e308, MOST), (-1.0, -1.0)])
def test_figures_can_be(told: float, fit: float) -> None:
    assert fit_answer(Queued(1, 1, 1, told, "full")).expected_seconds == fit
    usage = fit_answer(UsageView(1, "ada", "user", "", (), (QuotaView("you", "memory", told, 5.0),)))
    assert usage.quotas[0].used == fit


def test_numbers_of_an_executor_stay() -> None:
    record = ErrorRecord("builtins.KeyError", f"no{ESCAPES}", args=(1 << 60, f"no{ESCAPES}", inf))
    assert fit_words(record).args == (1 << 60, "no ]0;pwned  [2J", inf)
    assert fit_words(record).message == "no ]0;pwned  [2J"
