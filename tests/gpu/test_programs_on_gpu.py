"""The programs of `tests/programs` on a GPU: what they say is true of native CuPy, and of the pool."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Sides

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]

PROGRAMS = Path(__file__).parents[1] / "programs"
NAMES = sorted({path.stem for path in PROGRAMS.glob("*.py")} - {"expecting"})
#: Programs about remote CuPy alone: what it refuses, and what its errors keep alive.
OF_REMOTE_ONLY = {"saying_no", "errors"}


def run(command: list[str], sides: Sides, name: str, tmp_path: Path) -> None:
    path = str(PROGRAMS / f"{name}.py")
    done = subprocess.run(
        [*command, path], env=sides.environment, capture_output=True, text=True, timeout=300, check=False, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", NAMES)
def test_a_program_runs_through_the_pool(sides: Sides, name: str, tmp_path: Path) -> None:
    run([sys.executable, "-m", "workbench", "run"], sides, name, tmp_path)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in OF_REMOTE_ONLY])
def test_native_cupy_agrees_with_a_program(sides: Sides, name: str, tmp_path: Path) -> None:
    run([sys.executable], sides, name, tmp_path)
