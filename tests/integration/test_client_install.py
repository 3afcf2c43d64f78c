"""What a notebook's side is installed with is enough for it: no SciPy, no pydantic, nothing of a pool's side."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.integration.notebook_pool import cpu_pool

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

pytestmark = pytest.mark.timeout(240)

#: Starts the kernel as Jupyter does, runs cells, and prints what each of them said, as JSON.
_RUN_CELLS = """
import json, sys
from jupyter_client.manager import start_new_kernel

def said(client, code):
    found = []
    def hear(message):
        content = message["content"]
        if message["msg_type"] == "stream":
            found.append(content["text"])
        elif message["msg_type"] in ("execute_result", "display_data"):
            if "display_id" not in content.get("transient", {}):  # the line that tells of a second's wait has one
                found.append(content["data"]["text/plain"])
        elif message["msg_type"] == "error":
            found.append("\\n".join(content["traceback"]))
    client.execute_interactive(code, timeout=60, output_hook=hear)
    return "".join(found)

manager, client = start_new_kernel(startup_timeout=60, kernel_name="remote-gpu")
try:
    print(json.dumps([said(client, cell) for cell in json.load(sys.stdin)]))
finally:
    client.stop_channels()
    manager.shutdown_kernel()
"""


def closure(requirements: list[str]) -> dict[str, metadata.Distribution]:
    """Return what is installed with these requirements, by name."""
    found: dict[str, metadata.Distribution] = {}
    wanted = [Requirement(each) for each in requirements]
    while wanted:
        one = wanted.pop()
        extras = one.extras or {""}
        if one.marker is not None and not any(one.marker.evaluate({"extra": extra}) for extra in extras):
            continue
        name = canonicalize_name(one.name)
        if name in found:
            continue
        found[name] = metadata.distribution(name)
        for each in found[name].requires or ():
            further = Requirement(each)
            if further.marker is None or any(further.marker.evaluate({"extra": extra}) for extra in extras):
                further.marker = None
                wanted.append(further)
    return found


class Client:
    """An environment that holds a notebook's side only."""

    def __init__(self, root: Path) -> None:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(root)], check=True)
        self.python = root / "bin" / "python"
        (site,) = root.glob("lib/python*/site-packages")
        self.distributions = closure(PROJECT["dependencies"])
        for one in [*self.distributions.values(), metadata.distribution("gpu-workbench")]:
            for top in {path.parts[0] for path in one.files or ()}:
                is_hook = top.endswith(".pth") or top.startswith("_editable")
                if top != ".." and not is_hook and not (site / top).exists():
                    (site / top).symlink_to(one.locate_file(top))
        for package in ("workbench", "kernelproxy", "catalog", "gpu_backend"):
            (site / package).symlink_to(ROOT / package)

    def run(self, *words: str, given: str = "") -> subprocess.CompletedProcess[str]:
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        command = [str(self.python), *words]
        return subprocess.run(command, env=environment, input=given, capture_output=True, text=True, timeout=180)

    def megabytes(self) -> float:
        files = (file.locate() for one in self.distributions.values() for file in one.files or ())
        return sum(Path(file).stat().st_size for file in files if Path(file).exists()) / 1e6


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A notebook's side, and a pool that runs from the environment of the tests."""
    root = tmp_path_factory.mktemp("client")
    with cpu_pool(root):
        yield Client(root / "venv")


def test_a_pools_side_is_not_in_it(client: Client, capsys: pytest.CaptureFixture[str]) -> None:
    for extra in ("pool", "lab", "examples"):
        for requirement in PROJECT["optional-dependencies"][extra]:
            name = canonicalize_name(Requirement(requirement).name)
            assert name not in client.distributions or name == "prometheus-client"  # Jupyter's server brings that
    script = "import importlib.util as u; print([n for n in ('scipy', 'pydantic', 'cryptography') if u.find_spec(n)])"
    assert client.run("-c", script).stdout.strip() == "[]"
    size = f"a notebook's side: {len(client.distributions)} packages, {client.megabytes():.0f} MB"
    with capsys.disabled():
        sys.stdout.write(f"[{size}]")


def test_a_notebook_runs_on_it(client: Client) -> None:
    cells = [
        "import cupy as cp\nprint(float(cp.arange(10.0).sum()))",
        "%gpu status",
        "%catalog list",
        "import cupyx.scipy.sparse as sp\nm = sp.eye(3, format='csr')\nprint(float((m @ cp.ones(3)).sum()))",
        "m.get()",
    ]
    done = client.run("-c", _RUN_CELLS, given=json.dumps(cells))
    assert done.returncode == 0, done.stderr
    total, status, catalogue, product, fetched = json.loads(done.stdout)
    assert total == "45.0\n"
    assert "session" in status.lower()
    assert "Traceback" not in status + catalogue
    assert "Bitfusion" in catalogue
    assert product == "3.0\n"
    assert "pip install scipy" in fetched


@pytest.mark.parametrize(("command", "extra"), [("lab", "lab"), ("pool", "pool")])
def test_a_command_of_the_pools_side_says_what_to_install(client: Client, command: str, extra: str) -> None:
    done = client.run("-m", "workbench", command, "--help")
    assert done.returncode == 1
    assert f"pip install 'gpu-workbench[{extra}]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_its_other_commands_run(client: Client) -> None:
    for words in (["doctor"], ["catalog", "list"], ["run", "--help"], ["--help"], ["connect", "--help"]):
        done = client.run("-m", "workbench", *words)
        assert "ModuleNotFoundError" not in done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize(("command", "part"), [("usage", "rows"), ("top", "devices")])
def test_what_the_pool_does_is_seen_from_it(client: Client, command: str, part: str) -> None:
    done = client.run("-m", "workbench", "pool", command, "--json")
    assert done.returncode == 0, done.stderr
    assert part in json.loads(done.stdout)
    refused = client.run("-m", "workbench", "pool", command, "--state", "/elsewhere")
    assert (refused.returncode, "leave --state out" in refused.stderr) == (1, True), refused.stderr
