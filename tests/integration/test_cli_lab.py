"""`workbench lab`: pool and JupyterLab come up together, and go together, however the end comes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from gpu_backend.engine.detached import read_identity
from gpu_backend.pool import commands
from gpu_backend.pool.state import PoolState, at
from tests.integration.notebook_pool import environment, wait_until

_TOKEN = "for-this-test-only"


class Lab:
    """A running `workbench lab`."""

    def __init__(self, process: subprocess.Popen[str], runtime: Path) -> None:
        self.process = process
        assert process.stdout is not None
        self.told: dict[str, Any] = json.loads("".join(iter(process.stdout.readline, "}\n")) + "}")
        self.pool: PoolState = at(Path(self.told["config"]).parent)
        self._server_file = runtime / f"jpserver-{process.pid}.json"
        wait_until(self._server_file.exists, 30)

    def get(self, path: str) -> Any:
        server = json.loads(self._server_file.read_text())
        request = Request(server["url"] + path, headers={"Authorization": f"token {_TOKEN}"})
        with urlopen(request, timeout=10) as answer:
            return json.load(answer)

    def pool_processes(self) -> list[str]:
        return [
            name
            for name in ("supervisor", "gateway", "agent")
            if read_identity(self.pool.process_file(name)) is not None
        ]


@contextmanager
def lab(*words: str) -> Iterator[Lab]:
    command = [sys.executable, "-m", "workbench", "lab", "--json", "--no-browser", "--device", "cpu", *words]
    variables = {**os.environ, "JUPYTER_TOKEN": _TOKEN}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=variables, text=True
    ) as process:
        try:
            running = Lab(process, Path(os.environ["JUPYTER_RUNTIME_DIR"]))
            yield running
        finally:
            process.kill()
            process.wait()
    wait_until(lambda: running.pool_processes() == [], 20)


@pytest.fixture(scope="module", autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    root = tmp_path_factory.mktemp("lab")
    with environment(root):
        yield root


def test_it_serves_the_kernel_and_a_copy_of_the_examples(home: Path) -> None:
    with lab() as running:
        assert commands.status(running.pool).devices[0].kind == "cpu"
        kernels = running.get("api/kernelspecs")["kernelspecs"]
        assert kernels["remote-gpu"]["spec"]["display_name"] == "Remote GPU (CuPy)"
        examples = [one["name"] for one in running.get("api/contents/examples")["content"]]
        assert "01_option_pricing.ipynb" in examples
        assert running.told["root_dir"] == str(home / "gpu-workbench")
        running.process.send_signal(signal.SIGTERM)
        running.process.wait(timeout=20)


def test_two_labs_have_a_pool_each_and_a_killed_one_takes_only_its_own(home: Path, tmp_path: Path) -> None:
    with lab("--root-dir", str(tmp_path)) as first, lab("--root-dir", str(tmp_path)) as second:
        assert first.pool.root != second.pool.root
        first.process.kill()
        wait_until(lambda: first.pool_processes() == [], 20)
        assert second.pool_processes() == ["supervisor", "gateway", "agent"]
        assert commands.status(second.pool).devices
