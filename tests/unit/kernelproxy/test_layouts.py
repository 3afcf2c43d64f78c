"""What a layout says of its dtype, and what is known of one but for the number of its rows."""

from __future__ import annotations

import numpy as np
import pytest

from gpu_backend.opstream.layout import Layout, contiguous, some_rows
from gpu_backend.opstream.proof.setitem import fills_chosen


@pytest.mark.parametrize("char", "?bhilqBHILQefdFD")
def test_a_plain_dtype_is_numpys_own_object(char: str, monkeypatch: pytest.MonkeyPatch) -> None:
    own = np.dtype(char)
    copy = own.newbyteorder("=")
    monkeypatch.setattr(Layout, "_interned", {})
    made = contiguous((3,), copy)
    assert made.dtype is own
    assert contiguous((3,), own) is made


def test_other_dtypes_stay_as_they_are() -> None:
    for dtype in (np.dtype([("a", "i4")]), np.dtype("V3"), np.dtype(">f4")):
        assert contiguous((2,), dtype).dtype is dtype


def test_what_is_known_but_for_a_length_is_one_object() -> None:
    own = np.dtype("f4")
    copy = own.newbyteorder("=")
    some_rows.cache_clear()
    kind = some_rows(copy, (3,), 120)
    assert kind.dtype is own
    assert some_rows(own, (3,), 120) is kind
    others = [some_rows(np.dtype("i4"), (3,), 120), some_rows(own, (4,), 120), some_rows(own, (3,), 132)]
    assert kind not in others
    assert [kind.with_count(count) for count in (0, 7)] == [contiguous((0, 3), own), contiguous((7, 3), own)]


@pytest.mark.parametrize(
    ("shape", "mask", "rest", "dtype", "fits"),
    [
        ((5, 3), (5,), (3,), "f4", True), ((5, 3), (5, 3), (), "f4", True), ((5, 3), (5,), (1,), "f4", False),
        ((5, 3), (3,), (5,), "f4", False), ((0, 3), (0,), (3,), "f4", False), ((5, 3), (5,), (3,), "c8", False),
    ],
)  # fmt: skip
def test_what_a_mask_has_chosen_fits_where_rows_are_alike_and_no_part_is_lost(
    shape: tuple[int, ...], mask: tuple[int, ...], rest: tuple[int, ...], dtype: str, fits: bool
) -> None:
    target, chosen = contiguous(shape, np.dtype("f8")), contiguous(mask, np.dtype("?"))
    assert fills_chosen(target, chosen, some_rows(np.dtype(dtype), rest, 60)) is fits
