"""The programs of the page on functions do what it says, in a plain Python process."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from math import pi
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

import catalog
from gpu_backend.pool.settings import PoolSettings
from gpu_backend.pool.state import PoolState
from tests.integration.notebook_pool import cpu_pool, sessions, wait_until

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "functions.md"


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PoolState]:
    with cpu_pool(tmp_path_factory.mktemp("page"), PoolSettings(devices="cpu")) as own:
        yield own


def run(*words: str) -> str:
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, timeout=240, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def programs() -> tuple[str, str]:
    first, kept = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    return first, kept


def is_about_pi(printed: str) -> bool:
    told = dict(line.split(": ") for line in printed.splitlines())
    return abs(float(told["one call"]) - pi) < 0.03 and abs(float(told["many calls"]) - pi) < 0.01


def test_its_programs_print_what_they_say_and_leave_nothing(pool: PoolState) -> None:
    first, kept = programs()
    assert is_about_pi(run("-c", first))
    assert run("-c", kept) == "kept: [0.0, 10.0, 20.0, 30.0, 40.0, 50.0]\n"
    wait_until(lambda: sessions(pool) == ())


def test_the_first_is_a_cell_of_a_notebook_too(pool: PoolState) -> None:
    cell = nbformat.v4.new_code_cell(programs()[0])
    kernel = {"name": "remote-gpu", "display_name": "Remote GPU (CuPy)"}
    made = nbformat.v4.new_notebook(cells=[cell], metadata={"kernelspec": kernel})
    NotebookClient(made, timeout=240, iopub_timeout=240).execute()
    assert [output.name for output in cell.outputs] == ["stdout"] * len(cell.outputs)
    assert is_about_pi("".join(output.text for output in cell.outputs))
    wait_until(lambda: sessions(pool) == ())


def test_the_cell_of_the_article_runs(pool: PoolState) -> None:
    cell = catalog.get("osr2023-serverless-gpu").pool.cell
    values = re.findall(r": (0\.\d+) after", run("-m", "workbench", "run", "-c", cell))
    assert len(values) == 2
    assert all(0.4 < float(one) < 0.6 for one in values)
