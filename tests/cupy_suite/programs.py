"""CuPy's examples as tests: each is a program that is run as a user runs it, with small arguments."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cupy_suite.plan import Side

#: Command lines, where an example is too long with its own or has more than one to show.
_ARGUMENTS: dict[str, tuple[str, ...]] = {
    "cg/cg.py": ("--max-iter 20",),
    "finance/black_scholes.py": ("--n-options 100000",),
    "finance/monte_carlo.py": ("--n-options 8 --n-samples-per-thread 16 --n-threads-per-option 1000",),
    "gemm/sgemm.py": ("--m 130 --n 100 --k 70",),
    "gmm/gmm.py": ("--num 5000",),
    "kmeans/kmeans.py": ("--num 20000", "--num 20000 --use-custom-kernel"),
}
#: Want several GPUs, or are no programs.
_LEFT_OUT = (
    "finance/monte_carlo_multigpu.py",
    "gemm/utils.py",
    "interoperability/mpi4py_multiple_devices.py",
    "peer/peer_matrix.py",
)


class Programs:
    """The plugin of pytest that finds the programs."""

    def __init__(self, side: Side) -> None:
        self._side = side

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        """Collect a program's command lines."""
        return _File.from_parent(parent, path=file_path, side=self._side) if file_path.suffix == ".py" else None


class _File(pytest.File):
    def __init__(self, *, side: Side, **given: Any) -> None:
        super().__init__(**given)
        self._side = side

    def collect(self) -> Iterator[pytest.Item]:
        name = "/".join(self.path.parts[-2:])
        if name in _LEFT_OUT:
            return
        for words in _ARGUMENTS.get(name, ("",)):
            yield Program.from_parent(self, name=f"{self.path.name} {words}".strip(), side=self._side)


class Program(pytest.Item):
    """One command line. It passes if the program ends with status 0."""

    def __init__(self, *, side: Side, **given: Any) -> None:
        super().__init__(**given)
        self._side = side

    def runtest(self) -> None:
        """Run the program in its own folder."""
        python = [sys.executable] if self._side == "native" else [sys.executable, "-m", "workbench", "run"]
        ended = subprocess.Popen(
            [*python, *self.name.split()],
            cwd=self.path.parent,
            env={**os.environ, "MPLBACKEND": "agg"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            said, _ = ended.communicate()
        finally:  # a program that takes too long is left by an exception
            ended.kill()
            ended.wait()
        if ended.returncode:
            raise ProgramFailed(f"status {ended.returncode}\n{said}")

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return what the program said, its last line last."""
        return str(excinfo.value) if excinfo.errisinstance(ProgramFailed) else super().repr_failure(excinfo)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return where the program stands."""
        return self.path, 0, self.name


class ProgramFailed(Exception):
    """A program ended with another status than 0; the message is what it said."""
