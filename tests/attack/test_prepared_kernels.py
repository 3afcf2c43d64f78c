"""What a pool compiles beforehand is loaded by executors of all users, so none of them can change it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from gpu_backend.executor import config as configuration
from gpu_backend.executor import sandbox
from gpu_backend.executor.config import Descriptors, ExecutorConfig
from gpu_backend.executor.sandbox import Walls

pytestmark = pytest.mark.skipif(not sandbox.level(), reason="this system cannot shut a process in")

#: Begins as an executor does, reads a kernel, and then tries to spoil it; prints what succeeded.
TRIES = """
import json, os, sys
from pathlib import Path
from gpu_backend.executor.start import begin
prepared = Path(begin(Path(sys.argv[1])).prepared)
kernel = prepared / "a.cubin"
tries = {
    "read": kernel.read_bytes, "list": lambda: os.listdir(prepared), "write": lambda: kernel.write_bytes(b"mine"),
    "append": lambda: kernel.open("ab"), "cut": lambda: os.truncate(kernel, 0), "remove": kernel.unlink,
    "make": lambda: (prepared / "b.cubin").write_bytes(b"mine"), "rename": lambda: kernel.rename(prepared / "c.cubin"),
    "link": lambda: os.link(kernel, "mine.cubin"), "replace": lambda: os.replace("own", kernel),
    "make a note": lambda: (prepared / "x.ready").open("x"), "make a folder": lambda: (prepared / "d").mkdir(),
}
Path("own").write_bytes(b"mine")
done = []
for name, attempt in tries.items():
    try:
        attempt()
    except OSError:
        continue
    done.append(name)
print(json.dumps(done))
"""


def tried(tmp_path: Path, is_shut_in: bool) -> list[str]:
    own, prepared = tmp_path / "x" / "own", tmp_path / "kernels" / "prepared"
    for folder in (own, prepared):
        folder.mkdir(parents=True, exist_ok=True)
    (prepared / "a.cubin").write_bytes(b"a kernel")
    walls = Walls(private=(str(tmp_path / "kernels"), str(tmp_path / "x")))
    told = ExecutorConfig(
        device_kind="cuda", own=str(own), walls=walls if is_shut_in else None, agent_key="a" * 40, endpoints=(),
        descriptors=Descriptors(local=0, control=0, far=0, report=0), secret="0" * 64, certificate="0" * 64,
        prepared=str(prepared),
    )  # fmt: skip
    (tmp_path / "x" / configuration.CONFIG).write_bytes(msgspec.json.encode(told))
    command = [sys.executable, "-c", TRIES, str(tmp_path / "x")]
    environment = {"PYTHONPATH": str(Path(__file__).parents[2]), "PATH": "/usr/bin:/bin"}
    ended = subprocess.run(command, cwd=own, env=environment, capture_output=True, text=True, timeout=90, check=False)
    assert ended.returncode == 0, ended.stderr
    found: list[str] = json.loads(ended.stdout)
    return found


def test_who_is_shut_in_reads_prepared_kernels_and_changes_none(tmp_path: Path) -> None:
    assert tried(tmp_path, is_shut_in=True) == ["read", "list"]
    assert (tmp_path / "kernels" / "prepared" / "a.cubin").read_bytes() == b"a kernel"


def test_each_try_is_one_outside_of_the_walls(tmp_path: Path) -> None:
    assert len(tried(tmp_path, is_shut_in=False)) >= 9
