"""Signs of life: nothing within a second, then one line, brought up to date each second, and its last state."""

from __future__ import annotations

import io
import sys
import threading

import pytest

from gpu_backend.wire.errors import PoolUnreachable
from kernelproxy.session.notice import Notices, PassingNotice
from kernelproxy.session.signs import Sign, Signs

SVD = Sign("cupy.linalg.svd", "3 operations behind it", "Cell In[5], line 3", is_op=True)


class Played:
    """A clock that goes when it is told to, and a line that keeps all that it ever showed."""

    def __init__(self) -> None:
        self.now = 100.0
        self.lines: list[list[str]] = []
        self.parts: list[float | None] = []
        self.signs = Signs(lambda: self.now, Notices(of_sign=self.announce))

    def announce(self) -> Played:
        self.lines.append([])
        return self

    def show(self, text: str, part: float | None = None) -> None:
        self.lines[-1].append(text)
        self.parts.append(part)

    def close(self, text: str) -> None:
        self.lines[-1].append(f"end: {text}")

    def wait(self, seconds: float, sign: Sign = SVD) -> None:
        """Wait as others do, who look a hundred times a second."""
        since = self.now
        while self.now < since + seconds:
            self.signs.look(since, lambda: sign)
            self.now += 0.01
        self.signs.settle()


@pytest.fixture
def played() -> Played:
    return Played()


def test_what_ends_within_a_second_is_not_told(played: Played) -> None:
    for _ in range(100):
        played.wait(0.95)
    assert played.lines == []


def test_one_line_is_kept_up_to_date_and_ends_with_its_last_state(played: Played) -> None:
    played.wait(3.5)
    assert played.lines == [
        [
            "cupy.linalg.svd: 1 s so far · 3 operations behind it · Cell In[5], line 3",
            "cupy.linalg.svd: 2 s so far · 3 operations behind it · Cell In[5], line 3",
            "cupy.linalg.svd: 3 s so far · 3 operations behind it · Cell In[5], line 3",
            "end: Waited 3.5 s for cupy.linalg.svd · Cell In[5], line 3",
        ]
    ]


def test_a_cell_has_one_line_and_the_next_cell_another(played: Played) -> None:
    played.wait(1.5)
    played.wait(2.5)
    played.signs.begin_cell()
    played.wait(1.5)
    first, second = played.lines
    assert first[-1].endswith("2 such waits, 4 s in all")
    assert second[-1] == "end: Waited 1.5 s for cupy.linalg.svd · Cell In[5], line 3"


def test_another_place_gets_a_line_of_its_own_at_once(played: Played) -> None:
    played.wait(1.5)
    other = Played()
    played.signs.notices = Notices(of_sign=other.announce)
    played.wait(2.5)
    assert [len(line) for line in (*played.lines, *other.lines)] == [2, 3]


@pytest.mark.parametrize(("error", "how"), [(KeyboardInterrupt(), "interrupted"), (PoolUnreachable("p"), "failed")])
def test_a_wait_that_is_ended_says_how(played: Played, error: BaseException, how: str) -> None:
    since = played.now
    played.now += 12
    played.signs.look(since, lambda: SVD)
    played.signs.settle(error)
    assert played.lines[-1][-1] == f"end: cupy.linalg.svd: {how} after 12 s · Cell In[5], line 3"


def test_a_transfer_of_many_short_pieces_is_one_wait(played: Played) -> None:
    with played.signs.moving("Download", 4 << 30) as transfer:
        for piece in range(1, 9):
            played.wait(0.5, transfer.sign())
            transfer.done = piece << 29
            played.signs.look(transfer.since, transfer.sign)
    (line,) = played.lines
    assert line[0] == "Download: 1 s so far · 1.0 GiB of 4.0 GiB"
    assert line[-2:] == ["Download: 4 s so far · 4.0 GiB of 4.0 GiB", "end: Download took 4 s · 4.0 GiB"]
    assert played.parts == [0.25, 0.5, 0.75, 1.0]


def test_whoever_waits_hears_that_another_thread_seeks_the_connection(played: Played) -> None:
    found = threading.Event()

    def seek() -> None:
        with played.signs.reconnecting() as look:
            look("its port is shut")
            sought.set()
            found.wait(30)

    sought = threading.Event()
    thread = threading.Thread(target=seek)
    thread.start()
    assert sought.wait(30)
    played.wait(2.5)
    found.set()
    thread.join()
    played.wait(1.5)
    (line,) = played.lines
    assert line[1:3] == [
        "Reconnecting to the pool: 2 s so far · its port is shut",
        "end: Reconnecting to the pool took 2.5 s",
    ]
    assert line[-1].startswith("end: Waited 1.5 s for cupy.linalg.svd")


def test_only_the_main_thread_writes(played: Played) -> None:
    thread = threading.Thread(target=lambda: played.wait(5.0))
    thread.start()
    thread.join()
    assert played.lines == []


def test_a_place_that_cannot_be_written_to_ends_no_wait(played: Played) -> None:
    def broken() -> Played:
        raise ValueError("I/O operation on closed file")

    played.signs.notices.of_sign = broken
    played.wait(2.5)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_shows_one_line_that_fits_and_keeps_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", narrow := Terminal())
    monkeypatch.setenv("COLUMNS", "30")
    shown = PassingNotice()
    shown.show("cupy.linalg.svd: 12 s so far · 3 operations behind it")
    assert narrow.getvalue() == "\r\x1b[Kcupy.linalg.svd: 12 s so far…"
    shown.close("Waited 14 s for cupy.linalg.svd")
    assert narrow.getvalue().endswith("\r\x1b[K")
    assert "\n" not in narrow.getvalue()


def test_a_log_hears_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", log := io.StringIO())
    PassingNotice().show("cupy.linalg.svd: 12 s so far")
    PassingNotice().close("Waited 14 s for cupy.linalg.svd")
    assert log.getvalue() == ""
