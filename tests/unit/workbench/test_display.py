"""What people see of a session: complete in plain text, escaped in HTML, numbers in JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from html.parser import HTMLParser
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from kernelproxy.stream.work import Work
from workbench.display import Json, bytes_in_words
from workbench.status import GpuStatus, PoolFacts

STATUS = GpuStatus(
    session="s1",
    epoch=2,
    is_connected=True,
    device={
        "kind": "cuda",
        "name": "NVIDIA H200",
        "total_bytes": 1 << 37,
        "library": "CuPy 14.2.0",
        "compute_capability": "90",
    },
    memory={"used_bytes": 3 << 30, "limit_bytes": 4 << 30, "free_bytes": 1 << 36, "total_bytes": 1 << 37},
    counters={
        "ops": 1234,
        "batches": 20,
        "round_trips": 7,
        "answered_here": 912,
        "kept_bytes": 8192,
        "direct_bytes": 0,
        "trips": {"scalar": 5, "shape": 2},
        "sent_bytes": {"host": 4096},
        "received_bytes": {},
    },
    pool=PoolFacts("lab", "tcp://gpu:7766", "ada", "0.1.0", devices=1, sessions=3, capacity=8, mine=1),
    busy=0.87,
    share=0.4,
    sharing="interactive",
    work=Work("cupy.linalg.svd", "Cell In[5], line 3: u = svd(x)", 12.04, queued=4_031, unsent=12, is_heard=True),
)
WHOLE = replace(STATUS, is_whole=True)


class Tags(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.words: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.names.append(tag)

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def test_ten_lines_say_what_people_use() -> None:
    assert repr(STATUS).splitlines() == [
        "Remote GPU",
        "  device   NVIDIA H200, 87% busy in the last seconds",
        "  memory   3.0 GiB of your 4.0 GiB; 64.0 GiB of 128.0 GiB free",
        "  now      cupy.linalg.svd for 12 s (Cell In[5], line 3: u = svd(x))",
        "  to do    4,031 of your operations are not done yet, 12 of them not sent yet",
        "  share    40% of the device's time was yours in the last seconds (class interactive)",
        "  places   3 of 8 taken, 1 by you; nobody waits for one",
        "  session  s1 in lab, connected",
        "  so far   1,234 operations, 7 answers waited for; 4.0 KiB of arrays sent, 8.0 KiB spared, 0 B received",
        "  more     %gpu status --all",
    ]


def test_a_device_that_is_at_a_long_op_of_ours_is_not_idle() -> None:
    assert "H200, busy with your work" in repr(replace(STATUS, busy=0.0))
    assert "H200, 0% busy" in repr(replace(STATUS, busy=0.0, work=Work(is_heard=True)))


def test_the_rest_is_there_on_demand() -> None:
    text = repr(WHOLE)
    for fact in ("NVIDIA H200", "CuPy 14.2.0", "3.0 GiB", "4.0 GiB", "s1", "connected", "1,234", "7", "ada"):
        assert fact in text
    for name, count in (
        ("trips: a shape depended on values", "2"),
        ("bytes sent beside messages, on one host", "4,096"),
    ):
        assert any(name in line and line.endswith(count) for line in text.splitlines())
    assert "lab at tcp://gpu:7766" in text


@pytest.mark.parametrize("status", [STATUS, WHOLE], ids=["short", "whole"])
def test_html_says_what_the_text_says(status: GpuStatus) -> None:
    bundle = status._repr_mimebundle_()
    assert bundle["text/plain"] == repr(status)
    words = " ".join(Tags(bundle["text/html"]).words)
    for section in status.sections():
        for name, value in section.rows:
            assert name in words
            assert value in words


def test_the_terminal_shows_it_too() -> None:
    out = StringIO()
    Console(file=out, width=100).print(STATUS)
    assert "NVIDIA H200" in out.getvalue()


@given(st.text(max_size=30))
def test_no_text_becomes_markup(text: str) -> None:
    plain = Tags(GpuStatus(session="s", problem="p").html()).names
    assert Tags(GpuStatus(session=text or "s", problem=text or "p").html()).names == plain


def test_a_problem_comes_first_and_what_is_known_stays() -> None:
    status = GpuStatus(problem="Nobody answers at tcp://gpu:7766.", session="s1", epoch=1)
    assert repr(status).splitlines()[1].strip() == "Nobody answers at tcp://gpu:7766."
    assert "s1" in repr(status)
    assert 'role="alert"' in status.html()


def test_of_a_pool_that_turned_us_away_it_is_not_said_that_it_is_down() -> None:
    status = GpuStatus(problem="The pool turned us away.", session="s1", device={"name": "A GPU"})
    assert "not known while the pool tells us nothing" in repr(status)
    assert "down" not in repr(status)


def test_what_is_left_to_do_is_counted_as_people_count() -> None:
    def told(queued: int, unsent: int = 0) -> str:
        return repr(
            replace(STATUS, work=Work(queued=queued, unsent=unsent), counters={**STATUS.counters, "round_trips": 1})
        )

    assert "to do    nothing" in told(0)
    assert "1 of your operations is not done yet\n" in told(1)
    assert "2 of your operations are not done yet, and not sent\n" in told(2, unsent=2)
    assert "1 answer waited for" in told(0)


def test_of_a_pool_that_is_away_nothing_is_said_to_go_on() -> None:
    text = repr(replace(STATUS, problem="The pool is down.", is_connected=False))
    assert "H200, load not known" in text
    assert "4,031 of your operations were not done when the pool was last heard" in text
    assert "yet" not in text


def test_json_is_json() -> None:
    shown = Json(STATUS.to_dict())
    assert json.loads(repr(shown)) == STATUS.to_dict()
    assert shown._repr_mimebundle_()["application/json"]["counters"]["round_trips"] == 7


@pytest.mark.parametrize(
    ("count", "words"),
    [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (1 << 30, "1.0 GiB"), (3 << 40, "3.0 TiB")],
)
def test_bytes_in_words(count: int, words: str) -> None:
    assert bytes_in_words(count) == words
