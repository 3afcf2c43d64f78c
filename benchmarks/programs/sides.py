"""The processes that run programs, each on its side, as they are told."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any

_ROOT = Path(__file__).parents[2]


class Side:
    """A process that runs programs."""

    def __init__(self, which: str, environment: dict[str, str]) -> None:
        command = [sys.executable, "-m", "benchmarks.programs.side", which]
        self._process = subprocess.Popen(
            command, env=environment, cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        #: Name, kind, size on a GPU and small size of each program.
        self.programs: list[tuple[str, str, int, int]] = self._read()

    def __enter__(self) -> Side:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def run(self, name: str, size: int) -> dict[str, Any]:
        """Run a program once; return what `side.measure` found."""
        found: dict[str, Any] = self._asked({"name": name, "size": size})
        return found

    def wait(self) -> float:
        """Return how long it takes to wait for a device that has nothing to do, seconds."""
        return float(self._asked({}))

    def _asked(self, order: dict[str, Any]) -> Any:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return self._read()

    def _read(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"A side ended with status {self._process.wait()}; what it said stands above.")
        return json.loads(line)
