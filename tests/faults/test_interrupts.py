"""Ctrl-C with work under way: the cell stops at once, what it asked for is done, and the second Ctrl-C drops it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.integration.notebook_pool import wait_until

from .notebook import Notebook

#: Ops on arrays large enough that some wait for the device whenever the interrupt strikes.
RECORDING = """
for n in range(10**9):
    slow = slow * 1.0000001
    if n == 500:
        open({queued!r}, "w").close()
"""
WAITING = """
for n in range(10**9):
    slow = slow * 1.0000001
    if n == 100:
        open({queued!r}, "w").close()
    if n > 100:
        float(slow[0])
"""


@pytest.mark.parametrize("cell", [RECORDING, WAITING])
def test_an_interrupt_stops_the_cell_and_what_it_asked_for_is_done(mine: Notebook, cell: str, tmp_path: Path) -> None:
    queued = tmp_path / "queued"
    mine.value("kept = cp.arange(5); before = slow = cp.ones(1_000_000); float(slow[0])")
    mine.begin(cell.replace("{queued!r}", repr(str(queued))))
    wait_until(queued.exists)
    mine.interrupt()
    assert mine.finish().error == "KeyboardInterrupt"
    assert mine.value("(kept * 2).tolist()") == "[0, 2, 4, 6, 8]"
    assert mine.value("float(before[0])") == "1.0"
    # As many as the cell has counted, or one more: the interrupt strikes between two lines.
    assert mine.value("gap = np.log(float(slow[0])) / np.log(1.0000001) - n; bool(-0.5 < gap < 1.5)") == "True"


#: What a cell does to arrays, and to the host's model of them: out of place, in place, to a part, by a sum.
STEPS = (
    "x = x * 3 + 1",
    "y += 7",
    "y[2:] -= x[:-2]",
    "x[1:] = y[:-1]",
    "z = y.sum() + z",
    "y = cp.where(y > 1000, y - 1000, y)",
    "x = cp.concatenate([x[1:], x[:1]])",
    "x %= 10007",
)
MODEL = """
begun = 0
steps = [compile(step, "step", "exec") for step in {steps!r}]
model = dict(x=x.get(), y=y.get(), z=z.get(), cp=np)
"""
CHECK = """
def agrees():
    return all(np.array_equal(globals()[name].get(), model[name]) for name in "xyz")
for number in range(begun - 1):
    exec(steps[number % len(steps)], model)
agreed = agrees()
if not agreed and begun:
    exec(steps[(begun - 1) % len(steps)], model)
    agreed = agrees()
agreed
"""


@pytest.mark.parametrize("seed", range(3))
def test_arrays_agree_with_what_the_program_counted(mine: Notebook, tmp_path: Path, seed: int) -> None:
    """A loop counts each step that it begins; interrupted anywhere, its arrays are those before that step or behind."""
    chosen = random.Random(seed)
    mine.value("x, y, z = cp.arange(300), cp.ones(300, 'i8'), cp.zeros((), 'i8'); float(x[0])")
    for number in range(5):
        steps = chosen.sample(STEPS, k=5)
        mine.run(MODEL.format(steps=steps))
        begun = tmp_path / str(number)
        body = "".join(f"    begun += 1\n    {step}\n" for step in steps)
        look = f"    if begun > {chosen.randrange(2_000)} and not told:\n"
        tell = f"        told = not open({str(begun)!r}, 'w').close()\n"
        mine.begin(f"told = False\nwhile True:\n{body}{look}{tell}")
        wait_until(begun.exists)
        mine.interrupt()
        outcome = mine.finish()
        assert outcome.error == "KeyboardInterrupt", outcome
        assert mine.value(CHECK) == "True", steps


def test_a_second_interrupt_drops_what_is_under_way_and_names_it(mine: Notebook, tmp_path: Path) -> None:
    mine.value("kept = cp.arange(5); before = slow = cp.ones(3_000_000); counted = cp.zeros(3_000_000); float(slow[0])")
    mine.run("from kernelproxy.calls import interruption; said = []; interruption._HEAR_SECONDS = 60")
    mine.run("interruption.print = lambda text, file: said.append(text)")
    mine.run("current_session().pipeline.ahead.has_room = lambda batch: True")  # as if the ops had been thought short
    queued, waits = tmp_path / "queued", tmp_path / "waits"
    mine.begin(
        "for n in range(10**9):\n    slow = slow * 1.0000001\n    counted += 1\n"
        f"    if n == 5000:\n        open({str(queued)!r}, 'w').close()"
    )
    wait_until(queued.exists)
    mine.interrupt()
    assert mine.finish().error == "KeyboardInterrupt"
    assert "still done on the GPU" in mine.value("said[-1]")
    mine.begin(f"open({str(waits)!r}, 'w').close()\nfloat(slow[0])")
    wait_until(waits.exists)
    mine.interrupt()
    assert mine.finish().error == "KeyboardInterrupt"
    said = mine.value("said[-1]")
    assert "operations that had not begun are dropped" in said
    assert "Never computed: slow." in said
    assert "Not brought up to date: counted." in said
    assert mine.value("(kept * 2).tolist()") == "[0, 2, 4, 6, 8]"
    missing = mine.run("float(slow[0])")
    assert missing.error == "OpCancelled"
    assert "dropped" in missing.text
    assert "slow = slow * 1.0000001" in missing.notes
    assert mine.value("float(before[0])") == "1.0"
    assert mine.value("slow = before * 2; float(slow[0])") == "2.0"


def interrupted(mine: Notebook, begun: Path, body: str) -> None:
    """Run ``body`` for ever and interrupt it, wherever it may be; it notes in ``begun`` that it has begun."""
    mine.begin(f"open({str(begun)!r}, 'w').close()\nwhile True:\n    {body}")
    wait_until(begun.exists)
    mine.interrupt()
    outcome = mine.finish()
    assert outcome.error == "KeyboardInterrupt", outcome


def test_interrupts_one_after_the_other(mine: Notebook, tmp_path: Path) -> None:
    mine.value("total = cp.zeros(1, 'i8'); count = 0; float(total[0])")
    for number in range(10):
        # Each round adds one here and there, waits for the answer, and may be interrupted anywhere in between.
        interrupted(mine, tmp_path / str(number), "total += 1\n    seen = int(total[0])\n    count += 1")
        # An interrupt strikes between two lines at most, so they are at most one apart, and never for longer.
        assert mine.value("gap = int(total[0]) - count; count += gap; 0 <= gap <= 1") == "True"


def test_interrupts_of_copies(mine: Notebook, tmp_path: Path) -> None:
    mine.value("host = np.arange(8_000_000); kept = cp.asarray(host); int(kept[-1])")
    for number in range(6):
        interrupted(mine, tmp_path / str(number), "back = cp.asarray(host).get()\n    host[:] = back")
        assert mine.value("host = np.arange(8_000_000); bool(cp.asarray(host).sum() == host.sum())") == "True"
        assert mine.value("bool((kept.get() == host).all())") == "True"
