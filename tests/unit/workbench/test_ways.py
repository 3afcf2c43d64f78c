"""``%gpu ways`` tells how operations were carried out: past CuPy first, then what went its way, and why."""

from __future__ import annotations

import pytest

from gpu_backend.wire.errors import ProtocolError
from gpu_backend.wire.values import Tuple
from kernelproxy.stream.progress import ways_in
from workbench.ways import WaysFacts

WAYS = [
    ("", "gathered with others", 1_200),
    ("", "launched again", 30),
    ("cupy.fft.rfft", "such ops always do", 40),
    ("cupy.sort", "it has not come so often in this way", 2),
    ("cupy.fft.irfft", "such ops always do", 1),
]


def test_what_went_past_cupy_comes_first() -> None:
    past, by_cupy = WaysFacts(WAYS).sections()
    assert repr(WaysFacts(WAYS)).startswith("Ways of operations\nPast CuPy\n  Gathered with others  1,200\n")
    assert past.rows == (("Gathered with others", "1,200"), ("Launched again", "30"))
    assert by_cupy.title == "By CuPy: 43"
    assert by_cupy.rows[0] == ("cupy.fft.rfft", "40: such ops always do")


def test_programs_get_all_of_it_and_the_reasons_added_up() -> None:
    found = WaysFacts(WAYS).to_dict()
    assert found["past_cupy"] == {"gathered with others": 1_200, "launched again": 30}
    assert found["reasons"] == {"such ops always do": 41, "it has not come so often in this way": 2}
    assert {"name": "cupy.sort", "why": "it has not come so often in this way", "count": 2} in found["by_cupy"]


def test_only_the_most_frequent_are_shown() -> None:
    many = [(f"cupy.name{one}", "such ops always do", 50 - one) for one in range(40)]
    (by_cupy,) = WaysFacts(many).sections()
    assert [name for name, _ in by_cupy.rows] == [f"cupy.name{one}" for one in range(12)]


def test_a_device_with_one_way_says_so() -> None:
    assert repr(WaysFacts([])).splitlines()[1].split("  ") == [
        "",
        "All operations",
        WaysFacts([]).sections()[0].rows[0][1],
    ]
    assert not WaysFacts([]).problem


def test_the_executors_answer_is_read() -> None:
    assert ways_in(Tuple((Tuple(("", "launched again", 3)), Tuple(("cupy.sort", "x", 1))))) == [
        ("", "launched again", 3),
        ("cupy.sort", "x", 1),
    ]
    with pytest.raises(ProtocolError, match=r"\.ways"):
        ways_in(3)
