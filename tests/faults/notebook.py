"""Notebooks as processes of their own, for tests that kill, cut, interrupt and flood what they talk to."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any

from kernelproxy.settings import CONFIG_VARIABLE
from tests.integration.notebook_pool import wait_until

_CELLS = str(Path(__file__).with_name("cells.py"))
_ROOT = Path(__file__).parents[2]


class Outcome:
    """What came of a cell."""

    def __init__(self, told: dict[str, Any]) -> None:
        #: ``repr`` of the last expression's value, or None.
        self.value: str | None = told["value"]
        #: Name of the exception's class, or "".
        self.error: str = told["error"]
        #: What the exception said.
        self.text: str = told.get("text", "")
        self.notes: str = "\n".join(told.get("notes", []))
        self.seconds: float = told["seconds"]

    def __repr__(self) -> str:
        return f"{self.error}: {self.text} {self.notes}" if self.error else f"{self.value} in {self.seconds:.2f} s"


class Notebook:
    """A process that runs cells with remote CuPy. ``config`` is its client's settings file."""

    def __init__(self, config: Path, **environment: str) -> None:
        path = os.pathsep.join((str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])))
        self._process = subprocess.Popen(
            [sys.executable, _CELLS],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": path, CONFIG_VARIABLE: str(config), **environment},
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def begin(self, cell: str) -> None:
        """Start ``cell``; `finish` gives its outcome."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(cell) + "\n")
        self._process.stdin.flush()

    def finish(self) -> Outcome:
        """Wait for the cell that was begun."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the notebook's process has ended"
        return Outcome(json.loads(line))

    def run(self, cell: str) -> Outcome:
        """Run ``cell`` and return its outcome, whatever it is."""
        self.begin(cell)
        return self.finish()

    def value(self, cell: str) -> str:
        """Run ``cell``, which must succeed, and return its value."""
        outcome = self.run(cell)
        assert not outcome.error, outcome
        assert outcome.value is not None
        return outcome.value

    def interrupt(self) -> None:
        """Press Ctrl-C."""
        self._process.send_signal(signal.SIGINT)

    def kill(self) -> None:
        """End the process without warning."""
        self._process.kill()
        self._process.wait()

    def executor_pid(self) -> int:
        """Return the pid of the executor that serves this notebook."""
        return int(self.value("__import__('tests.executor_of').executor_of.pid_of(current_session().ticket)"))

    def end(self) -> int:
        """Let the process end as programs do; return its exit status."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            return self._process.wait(90)
        finally:
            self._process.kill()
            if self._process.stdout is not None:
                self._process.stdout.close()

    def __enter__(self) -> Notebook:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self.end()


_WORK = """
import os, time
place = os.open({progress!r}, os.O_RDWR | os.O_CREAT)
x, expected, rounds = cp.arange(1000), np.arange(1000), 0
while not os.path.exists({stop!r}):
    begun = time.monotonic()
    for _ in range(20):
        x = (x * 3 + 1) % 1_000_003
        expected = (expected * 3 + 1) % 1_000_003
    assert (x.get() == expected).all(), f"wrong in round {{rounds}}"
    rounds += 1
    os.pwrite(place, rounds.to_bytes(8, "little"), 0)
    time.sleep(0.01)
rounds
"""


class Neighbour:
    """Another user's notebook, which computes all the time and knows what must come out."""

    def __init__(self, config: Path, directory: Path) -> None:
        self._progress, self._stop = directory / "progress", directory / "stop"
        self._notebook = Notebook(config)
        self._notebook.begin(_WORK.format(progress=str(self._progress), stop=str(self._stop)))
        wait_until(self._progress.exists)

    def rounds(self) -> int:
        """Return how many rounds came out right so far."""
        return int.from_bytes(self._progress.read_bytes(), "little")

    def goes_on(self, since: int) -> None:
        """Assert that rounds come out right after those counted ``since``."""
        wait_until(lambda: self.rounds() > since + 2)

    def end(self) -> None:
        """Stop, and assert that never anything was wrong."""
        self._stop.touch()
        outcome = self._notebook.finish()
        self._notebook.end()
        assert not outcome.error, outcome
        assert int(outcome.value or 0) > 0
