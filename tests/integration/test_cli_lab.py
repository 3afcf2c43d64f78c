"""`workbench lab`: pool and JupyterLab come up together, and go together, however the end comes."""

from __future__ import annotations

import json
import re
import signal
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.error import HTTPError

import msgspec
import pytest

from gpu_backend.pool import commands
from kernelproxy.session.wishes import MEMORY_VARIABLE
from kernelproxy.settings import load, save
from tests.integration.notebook_pool import environment, wait_until
from tests.integration.running_lab import lab


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
        running.process.wait(timeout=90)


def test_after_a_refused_kernel_the_first_sigterm_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MEMORY_VARIABLE, "1000 TiB")
    with lab("--root-dir", str(tmp_path)) as running:
        # Only a server that has kernels ends them, and so meets what was left of one that never ran.
        running.ask("api/kernels", {"name": "python3"})
        for _ in range(2):
            with pytest.raises(HTTPError) as refused:
                running.ask("api/kernels", {"name": "remote-gpu"})
            assert refused.value.code == 503
            assert "the largest device here has" in refused.value.read().decode()
        running.process.send_signal(signal.SIGTERM)
        assert running.process.wait(timeout=90) == 0


def test_while_the_pool_is_asked_for_a_session_the_first_sigterm_ends_it(tmp_path: Path) -> None:
    silent = tmp_path / "gateway"
    with socket.socket(socket.AF_UNIX) as gateway, lab("--root-dir", str(tmp_path)) as running:
        running.ask("api/kernels", {"name": "python3"})
        gateway.bind(str(silent))
        gateway.listen()
        settings = Path(running.told["config"])
        save(msgspec.structs.replace(load(settings), gateway=f"ipc://{silent}"), settings)
        with ThreadPoolExecutor() as others:
            others.submit(running.ask, "api/kernels", {"name": "remote-gpu"})
            asked, _ = gateway.accept()
            running.process.send_signal(signal.SIGTERM)
            assert running.process.wait(timeout=90) == 0
            asked.close()


def test_jupyterlab_asks_nobody_about_news(tmp_path: Path) -> None:
    with lab("--root-dir", str(tmp_path)) as running:
        (told,) = re.findall(r'<script id="jupyter-config-data"[^>]*>(.*?)</script>', running.ask("lab"), re.DOTALL)
        assert "@jupyterlab/apputils-extension:announcements" in json.loads(told)["disabledExtensions"]


def test_two_labs_have_a_pool_each_and_a_killed_one_takes_only_its_own(home: Path, tmp_path: Path) -> None:
    with lab("--root-dir", str(tmp_path)) as first, lab("--root-dir", str(tmp_path)) as second:
        assert first.pool.root != second.pool.root
        first.process.kill()
        wait_until(lambda: first.pool_processes() == [])
        assert second.pool_processes() == ["supervisor", "gateway", "agent"]
        assert commands.status(second.pool).devices
