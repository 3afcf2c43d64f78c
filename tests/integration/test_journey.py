"""The cell whose journey the documentation tells, on a real pool: what it costs is what the page says."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO, NamedTuple

import pytest

from gpu_backend.engine.detached import read_identity
from gpu_backend.executor.config import OWN, PROCESS
from gpu_backend.node import launcher
from gpu_backend.pool.settings import PoolSettings
from kernelproxy.compiled import CORE_VARIABLE, is_compiled
from tests.integration.files_entered import SEGMENTS, VARIABLE
from tests.integration.notebook_pool import cpu_pool, wait_until

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "journey-of-a-cell.md"
README = Path(__file__).parents[2] / "README.md"
COST = """
import kernelproxy
counters = kernelproxy.current_session().counters
print(counters.ops, counters.round_trips)
"""


def test_three_ops_and_one_question(tmp_path: Path) -> None:
    program = tmp_path / "cell.py"
    program.write_text(_cell() + COST)
    with cpu_pool(tmp_path / "pool"):
        ran = subprocess.run(
            [sys.executable, "-m", "workbench", "run", str(program)],
            capture_output=True, text=True, timeout=200, check=True,
        )  # fmt: skip
    assert ran.stdout.splitlines() == ["24.0", "4 1"]
    assert "Three ops and one question" in PAGE.read_text()


#: Some statements, with the files of ours that they enter, each when it first is.
FOLLOWED = """
import sys
sys.path.insert(0, {here!r})
from files_entered import FilesEntered

import cupy as cp
{before}
print("ready", flush=True)
sys.stdin.readline()
entered = FilesEntered(lambda stack: print(stack))
entered.begin()
{followed}
sys.setprofile(None)
print("done", flush=True)
sys.stdin.readline()
"""
_HERE = Path(__file__).parent
#: How many files somebody opens who follows an op from the array to the device.
MOST_FILES_OF_AN_OP = 10


#: The last statement of the page, in a session that has carried it out before; then all of it is done.
IN_PLACE = """
x[1:-1] += y
print("recorded")
cp.cuda.get_current_stream().synchronize()
"""


BEFORE = f"x, y = cp.zeros(6), cp.ones(4)\n{IN_PLACE}"

#: Has ops taken for long once nobody can say any more what those before took: such an op is sent at once by whoever
#: records it, as the first ones of a session are, and not left for the sender to come to it.
SENT_AT_ONCE = """
from kernelproxy.client import current
pipeline = current().pipeline
while pipeline.journal.marks.done < pipeline.journal.marks.recorded:
    pipeline.read(0.05)
for costs in pipeline.ahead.costs:
    for cost in costs.values():
        cost.is_long = True
"""


class Journey(NamedTuple):
    """What is entered, in order, on each side: each time the file, its caller, and so on to the outermost.

    ``recorded`` is what the notebook enters until it says that the statement of the page is recorded.
    """

    notebook: list[list[str]]
    executor: list[list[str]]
    recorded: list[list[str]]


@pytest.fixture(scope="module")
def journey(tmp_path_factory: pytest.TempPathFactory) -> Journey:
    """Follow the cell."""
    return followed(tmp_path_factory.mktemp("j"), "float(cp.zeros(1)[0])  # a session is there", _cell())


@pytest.fixture(scope="module")
def in_place(tmp_path_factory: pytest.TempPathFactory) -> Journey:
    """Follow one statement."""
    return followed(tmp_path_factory.mktemp("i"), BEFORE, IN_PLACE)


@pytest.fixture(scope="module")
def by_default(tmp_path_factory: pytest.TempPathFactory) -> Journey:
    """Follow it with the compiled core, to a device that carries out instructions."""
    return followed(tmp_path_factory.mktemp("d"), BEFORE + SENT_AT_ONCE, IN_PLACE, "on", (SEGMENTS,))


def followed(root: Path, before: str, statements: str, core: str = "off", options: tuple[str, ...] = ()) -> Journey:
    """Run ``statements`` in a real notebook process with a real executor; if ``core`` is off, all of it in Python."""
    program = root / "cell.py"
    program.write_text(FOLLOWED.format(here=str(_HERE), before=before, followed=statements))
    command = (sys.executable, str(_HERE / "files_entered.py"), *options)
    settings = PoolSettings(devices="cpu", executor_command=command, warm_executors_per_device=0)
    with (
        cpu_pool(root / "pool", settings) as pool,
        subprocess.Popen(
            [sys.executable, "-m", "workbench", "run", str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True, env={**os.environ, CORE_VARIABLE: core, VARIABLE: "off"},
        ) as notebook,
    ):  # fmt: skip
        assert notebook.stdout is not None
        assert _until("ready\n", notebook.stdout) == ["recorded\n"] * before.count('print("recorded")')
        (directory,) = map(Path, launcher.directories(str(pool.runtime)))
        identity = read_identity(directory / PROCESS)
        assert identity is not None
        os.kill(identity.pid, signal.SIGUSR1)
        notes = directory / OWN / "files"
        wait_until(lambda: notes.read_text().startswith("anew\n"))
        assert notebook.stdin is not None
        notebook.stdin.write("\n")
        notebook.stdin.flush()
        said = _until("done\n", notebook.stdout)
        until = said.index("recorded\n") if "recorded\n" in said else 0
        told = (said, notes.read_text().splitlines(), said[:until])
        made = Journey(*([line.split() for line in lines if "/" in line] for lines in told))
        notebook.communicate("\n", timeout=200)
        return made


def test_the_files_are_entered_in_the_order_that_the_page_tells(journey: Journey) -> None:
    listed = PAGE.read_text().partition("## The files, in order")[2].partition("\n## ")[0]
    to_record, to_send, in_executor = (re.findall(r"`([\w/]+\.py)`", part) for part in listed.split("\n- ")[1:])
    assert min(len(to_record), len(to_send), len(in_executor)) > 5
    assert _in_order(to_record, _files(journey.notebook)) == []
    assert _in_order(to_send, _files(journey.notebook)) == []
    assert _in_order(in_executor, _files(journey.executor)) == []


def test_a_reader_follows_one_op_to_the_device_through_ten_files(in_place: Journey) -> None:
    """Each file of the page's list is called by the one before it, but for the first and where processes change."""
    listed = PAGE.read_text().partition("## One op, file by file")[2].partition("This is what the op means.")[0]
    told = re.findall(r"^\d+\. `([\w/]+\.py)`", listed, re.MULTILINE)
    assert len(told) <= MOST_FILES_OF_AN_OP
    window, *recorded = told[: told.index("kernelproxy/stream/recorder.py") + 1]
    sent = told[told.index("kernelproxy/stream/pipeline.py") : told.index("gpu_backend/executor/process.py")]
    run = told[told.index("gpu_backend/executor/process.py") :]
    assert in_place.notebook[0] == [window]
    assert recorded[::-1] in in_place.notebook
    assert sent[::-1] in [stack[: len(sent)] for stack in in_place.notebook]
    device, *callers = next(stack for stack in in_place.executor if stack[0] == "gpu_backend/devices/cpu/ufunc.py")
    assert (device in listed, callers) == (True, [*run[::-1], "gpu_backend/executor/start.py"])


@pytest.mark.skipif(not is_compiled, reason="nothing is compiled here")
def test_by_default_a_reader_opens_eight_files(by_default: Journey) -> None:
    plain, _, listed = PAGE.read_text().partition("## One op, file by file")[2].partition("these eight are opened:")
    core, sending, *told = re.findall(r"\d+\. `([\w/]+\.(?:py|c|h))`", listed.partition("\n## ")[0])
    assert len((core, sending, *told)) == 8 < MOST_FILES_OF_AN_OP
    assert (core, sending) == ("kernelproxy/csrc/core.c", "kernelproxy/csrc/sending.h")
    assert [told[0]] in by_default.recorded, "nobody in Python calls it"
    passed_by = set(re.findall(r"`(kernelproxy/(?:array|calls)/[\w/]+\.py)`", plain))
    assert len(passed_by) == 3
    assert not passed_by & set(_files(by_default.recorded))
    process = told.index("gpu_backend/executor/process.py")
    sent, run, device = told[:process], told[process:-1], told[-1]
    assert sent[::-1] in [stack[: len(sent)] for stack in by_default.notebook]
    gathered = next(stack for stack in by_default.executor if stack[0] == run[-1])
    assert gathered == [*run[::-1], "gpu_backend/executor/start.py"]
    assert "    def launch(" in (PAGE.parents[2] / device).read_text()


def test_the_readmes_hops_are_of_that_journey(journey: Journey) -> None:
    hops = README.read_text().partition("## The journey of a cell")[2].partition("\n## ")[0]
    steps = [re.findall(r"`([\w/]+\.py)`", step) for step in re.split(r"^\d\. ", hops, flags=re.MULTILINE)[1:]]
    in_kernel, on_wire, by_the_device = steps[:3]
    assert _in_order(in_kernel[1:], _files(journey.notebook)) == [], "the first hop is the kernel's own"
    assert _in_order(on_wire, _files(journey.notebook)) == []
    entered = ["gpu_backend/devices/cpu/call.py" if path.endswith("cuda.py") else path for path in by_the_device]
    assert _in_order(entered, _files(journey.executor)) == []


def test_every_file_that_a_page_names_is_there() -> None:
    named = {path for page in (PAGE, README) for path in re.findall(r"`([\w/]+/[\w/]+\.py)`", page.read_text())}
    assert [path for path in sorted(named) if not (PAGE.parents[2] / path).is_file()] == []


def _until(last: str, lines: IO[str]) -> list[str]:
    """Return the lines before ``last``."""
    said = []
    for line in lines:
        if line == last:
            return said
        said.append(line)
    raise AssertionError(f"it ended without {last!r}: {said}")


def _cell() -> str:
    found = re.search(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert found
    return found[1]


def _files(entered: list[list[str]]) -> list[str]:
    return [stack[0] for stack in entered]


def _in_order(told: list[str], entered: list[str]) -> list[str]:
    """Return what is told and was not entered, or not behind what is told before it."""
    rest = iter(entered)
    return [path for path in told if not any(other == path for other in rest)]
