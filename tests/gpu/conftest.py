"""A pool on this machine's GPU, and programs run twice: on native CuPy and through the pool."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

WORKBENCH = [sys.executable, "-m", "workbench"]
PROGRAM_SECONDS = 300


class Sides:
    """Runs the same program on both sides. A program leaves what is to be compared in the dictionary ``results``."""

    def __init__(self, root: Path, environment: dict[str, str]) -> None:
        self.root = root
        self.environment = environment

    def native(self, program: str, **variables: str) -> Any:
        """Run ``program`` on real CuPy in this machine; return its results."""
        return self._run([sys.executable], program, variables)

    def remote(self, program: str, **variables: str) -> Any:
        """Run ``program`` on the pool; return its results."""
        return self._run([*WORKBENCH, "run"], program, variables)

    def outcome(self, program: str) -> subprocess.CompletedProcess[str]:
        """Run ``program`` on the pool and return how it ended."""
        path = self._write("results = {}\n" + program)
        command = [*WORKBENCH, "run", str(path)]
        return subprocess.run(
            command, env=self.environment, capture_output=True, text=True, timeout=PROGRAM_SECONDS, check=False
        )

    def _run(self, command: list[str], program: str, variables: dict[str, str]) -> Any:
        output = self.root / "results.json"
        output.unlink(missing_ok=True)
        ending = f"\nimport json as _json\nopen({str(output)!r}, 'w').write(_json.dumps(results))\n"
        path = self._write("results = {}\n" + program + ending)
        subprocess.run(
            [*command, str(path)], env={**self.environment, **variables}, timeout=PROGRAM_SECONDS, check=True
        )
        return json.loads(output.read_text())

    def _write(self, program: str) -> Path:
        path = self.root / "program.py"
        path.write_text(program)
        return path


@pytest.fixture(scope="session")
def sides() -> Iterator[Sides]:
    """Start a pool that offers the GPU, and end it."""
    root = Path(tempfile.mkdtemp(prefix="gwg"))
    environment = {
        **os.environ,
        "MPLBACKEND": "agg",
        "XDG_CONFIG_HOME": str(root / "config"),
        "XDG_STATE_HOME": str(root / "state"),
    }
    environment.pop("GPU_WORKBENCH_CONFIG", None)
    pool = [*WORKBENCH, "pool"]
    state = ["--state", str(root / "pool")]
    (root / "pool").mkdir(mode=0o700)
    (root / "pool" / "pool.toml").write_text('devices = "cuda"\nseveral_gpus = "at-your-own-risk"\n')
    subprocess.run([*pool, "up", *state], env=environment, timeout=120, check=True)
    try:
        yield Sides(root, environment)
    finally:
        subprocess.run([*pool, "down", *state], env=environment, timeout=120, check=True)
        shutil.rmtree(root, ignore_errors=True)


@pytest.fixture(scope="module")
def one_gpu() -> Iterator[None]:
    """Let pools that are started have this machine's first GPU and no other: what is tested is how it is shared."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CUDA_VISIBLE_DEVICES", os.environ.get("CUDA_VISIBLE_DEVICES", "0").partition(",")[0])
        yield
