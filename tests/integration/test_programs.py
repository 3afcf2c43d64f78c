"""Programs as users write them, through a pool on the CPU device. On a GPU: `tests/gpu/test_programs_on_gpu.py`."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpu_backend.pool.state import PoolState
from tests.integration.notebook_pool import cpu_pool

PROGRAMS = Path(__file__).parents[1] / "programs"
#: Programs that need what only a GPU has.
FOR_A_GPU_ONLY = {"graphs"}
NAMES = sorted({path.stem for path in PROGRAMS.glob("*.py")} - {"expecting"})


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PoolState]:
    with cpu_pool(tmp_path_factory.mktemp("programs")) as own:
        yield own


@pytest.mark.timeout(180)
@pytest.mark.parametrize("name", [name for name in NAMES if name not in FOR_A_GPU_ONLY])
def test_a_program_runs_through_the_pool(pool: PoolState, name: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "workbench", "run", str(PROGRAMS / f"{name}.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=150, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
