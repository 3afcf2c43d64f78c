"""A `workbench lab` as a person starts it, without the browser."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from gpu_backend.engine.detached import read_identity
from gpu_backend.pool.state import PoolState, at
from tests.integration.notebook_pool import wait_until

TOKEN = "for-this-test-only"


class Lab:
    """A running `workbench lab`."""

    def __init__(self, process: subprocess.Popen[str], runtime: Path) -> None:
        self.process = process
        assert process.stdout is not None
        lines = [process.stdout.readline()]
        while lines[-1] != "}\n":
            assert lines[-1], f"it has ended: {lines}"
            lines.append(process.stdout.readline())
        self.told: dict[str, Any] = json.loads("".join(lines))
        self.pool: PoolState = at(Path(self.told["config"]).parent)
        self._server_file = runtime / f"jpserver-{process.pid}.json"
        wait_until(self._is_heard)

    def _is_heard(self) -> bool:
        try:
            self.ask("api")
        except (OSError, ValueError):  # it writes its file before it listens, and not at once
            return False
        return True

    @property
    def url(self) -> str:
        """JupyterLab's address, with a slash at its end."""
        return str(json.loads(self._server_file.read_text())["url"])

    def get(self, path: str) -> Any:
        """Return what JupyterLab's REST API says."""
        return json.loads(self.ask(path))

    def ask(self, path: str, told: Any = None) -> str:
        """Return what JupyterLab answers at ``path``; to a POST of ``told``, if that is given."""
        body = None if told is None else json.dumps(told).encode()
        request = Request(self.url + path, body, {"Authorization": f"token {TOKEN}"})
        with urlopen(request, timeout=90) as answer:
            return str(answer.read().decode())

    def pool_processes(self) -> list[str]:
        return [
            name
            for name in ("supervisor", "gateway", "agent")
            if read_identity(self.pool.process_file(name)) is not None
        ]


@contextmanager
def lab(*words: str) -> Iterator[Lab]:
    command = [sys.executable, "-m", "workbench", "lab", "--json", "--no-browser", "--device", "cpu", *words]
    variables = {**os.environ, "JUPYTER_TOKEN": TOKEN}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=variables, text=True
    ) as process:
        try:
            running = Lab(process, Path(os.environ["JUPYTER_RUNTIME_DIR"]))
            yield running
        finally:
            process.kill()
            process.wait()
    wait_until(lambda: running.pool_processes() == [])
