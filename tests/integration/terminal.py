"""People at their terminals. Each command is a process of its own."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.integration.notebook_pool import environment
from tests.spare_ports import spare_port


class Terminal:
    """A person with a home directory and a shell."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.variables = {
            **os.environ,
            "HOME": str(home),
            "XDG_CONFIG_HOME": str(home / "config"),
            "XDG_STATE_HOME": str(home / "state"),
            "COLUMNS": "200",
        }

    def run(self, *words: str, typed: str = "") -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "workbench", *words]
        return subprocess.run(
            command, env=self.variables, input=typed, capture_output=True, text=True, timeout=200, check=False
        )

    @contextmanager
    def screen(self, *words: str, columns: int = 80) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
        """Run a command in a terminal of so many columns; give its process, and the descriptor of who sits there."""
        ours, theirs = pty.openpty()
        termios.tcsetwinsize(theirs, (24, columns))
        variables = {name: value for name, value in self.variables.items() if name != "COLUMNS"}
        command = [sys.executable, "-m", "workbench", *words]
        with subprocess.Popen(command, env=variables, stdin=theirs, stdout=theirs, stderr=theirs) as process:
            os.close(theirs)
            try:
                yield process, ours
            finally:
                process.kill()
        os.close(ours)

    def json(self, *words: str, status: int = 0, typed: str = "") -> dict[str, Any]:
        done = self.run(*words, "--json", typed=typed)
        assert done.returncode == status, done.stderr
        return dict(json.loads(done.stdout))


def read_to_end(descriptor: int) -> str:
    """Return all that a terminal shows until its last process is gone."""
    shown = b""
    with suppress(OSError):  # what Linux says of a terminal without processes
        while piece := os.read(descriptor, 65536):
            shown += piece
    return shown.decode()


@contextmanager
def operating(home: Path, *options: str) -> Iterator[Terminal]:
    """Have the operator of a pool that is up and heard over TCP."""
    with environment(home):
        terminal = Terminal(home)
        port = str(spare_port())
        try:
            terminal.json("pool", "up", "--devices", "cpu", "--listen", "127.0.0.1", "--port", port, *options)
            yield terminal
        finally:
            terminal.run("pool", "down")
