"""What a newcomer's first hour met that depends on the device: interrupts, running ahead, copies, signs of life."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpu_backend.pool.settings import PoolSettings
from tests.faults.notebook import Notebook
from tests.integration.notebook_pool import cpu_pool, wait_until
from tests.integration.test_jupyter_signs import SLOW

pytestmark = pytest.mark.timeout(600)

#: So many decompositions are recorded in a moment, and are some seconds' work of any device.
_MANY = 200
_ROUNDS = 5
#: Enough for the slowest of a second's waits on either device.
_LOOPS = 3_000_000_000
#: A line that keeps all that is shown on it.
_NOTICES = """
from kernelproxy.client import current
from kernelproxy.session.notice import Notices
class Kept:
    lines = []
    def show(self, text, part=None): self.lines.append(text)
    def close(self, text): self.lines.append("end: " + text)
current().signs.notices = Notices(Kept, Kept)
"""


@pytest.fixture(scope="module", params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def config(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The settings of a notebook whose pool has one kind of device."""
    with cpu_pool(tmp_path_factory.mktemp("hour"), PoolSettings(devices=request.param)) as own:
        yield own.root / "client.toml"


@pytest.fixture
def mine(config: Path) -> Iterator[Notebook]:
    with Notebook(config) as notebook:
        notebook.value("import cupy as cp; float(cp.ones(3).sum())")
        yield notebook


def interrupt(mine: Notebook, cell: str, begun: Path) -> None:
    """Run ``cell``, which notes in ``begun`` that its loop is on its way, and interrupt it there."""
    mine.begin(cell)
    wait_until(begun.exists)
    mine.interrupt()
    assert mine.finish().error == "KeyboardInterrupt"


def test_an_interrupt_keeps_arrays_and_counters_together(mine: Notebook, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    mine.value("x, u, n = cp.zeros(1000), cp.zeros(1000), 0; float(x[0])")
    cell = f"while True:\n    x += 1; u = u + 1; n += 1\n    if n == 500: open({str(begun)!r}, 'w').close()"
    interrupt(mine, cell, begun)
    # It may strike between two statements: one apart, then, and never the thousands that were under way.
    assert mine.value("n >= 500 and int(x[0]) - n in (0, 1) and int(u[0]) - n in (0, 1)") == "True"
    assert mine.value("float(x.min()) == float(x.max()) and float(u.min()) == float(u.max())") == "True"


def test_a_loop_of_long_ops_waits_for_the_device(mine: Notebook) -> None:
    mine.value("x = cp.eye(256); s = cp.linalg.svd(x)[1]; float(s[0])")
    mine.value("for _ in range(5): cp.linalg.svd(x)[1][0].item()\nNone, 0")
    mine.value("from kernelproxy.stream.work import under_way; None, 0")
    queued = int(
        mine.value(f"for _ in range({_MANY}): s = cp.linalg.svd(x)[1]\nunder_way(current_session().pipeline).queued")
    )
    assert queued < _MANY // 2
    assert mine.value("float(s[0])") == "1.0"
    timed = "__import__('timeit').Timer(lambda: cp.linalg.svd(x)).autorange()[0] >= 1"
    assert mine.value(timed) == "True"
    assert mine.value("float(s[0])") == "1.0"


def test_a_large_download_is_interrupted_and_nothing_swallows_it(mine: Notebook, tmp_path: Path) -> None:
    mine.value("import sys; lost = []; sys.unraisablehook = lost.append; big = cp.arange(30_000_000); int(big[1])")
    for number in range(_ROUNDS):
        begun = tmp_path / str(number)
        interrupt(mine, f"while True:\n    host = big.get()\n    open({str(begun)!r}, 'w').close()", begun)
        assert mine.value("len(lost)") == "0"
    assert mine.value("bool((big.get() == np.arange(30_000_000)).all())") == "True"


def test_a_wait_says_what_it_is_for_and_how_long_it_took(mine: Notebook) -> None:
    mine.run(_NOTICES)
    mine.value(SLOW + f"slow((1,), (1,), ({_LOOPS}, out))\nfloat(out[1])")
    lines = mine.value("Kept.lines")
    assert re.search(r"slow: \d+ s so far", lines), "each second is told that it is looked in"
    assert "line 4: slow((1,), (1,)" in lines
    assert "end: " in lines
    before = int(mine.value("len(Kept.lines)"))
    mine.run("current().signs._clock = lambda: 0.0")  # no time passes, however busy the machine
    mine.value("float(cp.ones(3).sum())")
    assert int(mine.value("len(Kept.lines)")) == before, "what ends at once is not told"
