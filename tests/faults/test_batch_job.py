"""The batch script for Slurm, run as it is with Slurm's own commands played: two hosts of one machine become a pool."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from gpu_backend.pool import commands, people, state
from gpu_backend.transport import curve
from gpu_backend.wire.errors import PoolError
from tests.integration.conftest import processes_with, until

from .machines import only, sessions_on
from .notebook import Notebook
from .served import ROOT

pytestmark = [pytest.mark.timeout(300), pytest.mark.skipif(not Path("/bin/bash").exists(), reason="needs bash")]

_SCRIPT = ROOT / "docs" / "how-to" / "deploy" / "slurm" / "pool.sbatch"
#: The token of an invitation.
_TOKEN = re.compile(rb"node-[\w-]{60}")
#: Each runs on this machine; a host is known by the address that it has.
_PLAYED = {
    "scontrol": "printf 'alpha\\nbeta\\n'",
    "srun": """
        for word; do case $word in --nodelist=*) export PLAYED=${word#--nodelist=};; esac; done
        while case $1 in --*) true;; *) false;; esac; do shift; done
        exec "$@"
    """,
    "hostname": "case $PLAYED in alpha) echo 127.0.0.1;; *) echo 127.0.0.2;; esac",
    "workbench": f'exec {sys.executable} -P -m workbench "$@"',
}


@contextmanager
def job(home: Path, **variables: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run the script as a job on two hosts."""
    played = home / "bin"
    played.mkdir()
    for name, body in _PLAYED.items():
        (played / name).write_text(f"#!/bin/sh\n{body}\n")
        (played / name).chmod(0o755)
    environment = {
        **os.environ, "PATH": f"{played}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT), "HOME": str(home),
        "XDG_CACHE_HOME": str(home), "XDG_CONFIG_HOME": str(home), "SLURM_JOB_ID": "7",
        "SLURM_JOB_NODELIST": "[alpha,beta]", "STATE_DIR": str(home / "job"), **variables,
    }  # fmt: skip
    environment.pop("XDG_RUNTIME_DIR", None)
    with subprocess.Popen(
        ["/bin/bash", str(_SCRIPT)], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:  # fmt: skip
        try:
            yield process
        finally:
            for name in ("pool", "node"):
                commands.end_processes(state.at(home / "job" / name))
            process.kill()


def files_below(home: Path) -> Iterator[Path]:
    """Yield the files that there are, while others are made and removed."""
    for folder, _, names in os.walk(home):
        yield from (Path(folder, name) for name in names)


def has_token(path: Path) -> bool:
    try:
        return path.is_file() and _TOKEN.search(path.read_bytes()) is not None
    except FileNotFoundError:  # it was a note on its way to its name
        return False


def test_a_job_is_a_pool_of_its_hosts_and_ends_as_one() -> None:
    with TemporaryDirectory(prefix="gwb") as directory, pytest.MonkeyPatch.context() as patch:
        patch.delenv("XDG_RUNTIME_DIR", raising=False)
        home = Path(directory)
        keys = curve.load_or_generate(home / "ada.key")
        (home / "users").write_text(f"ada {keys.public.decode()}\n")
        with job(home, USERS=str(home / "users")) as process:
            pool = state.at(home / "job" / "pool")
            until(lambda: {one.name: one.state for one in commands.status(pool).nodes}.get("beta") == "up")
            until(lambda: "ada" in {one.name for one in people.people(pool)})
            config = commands.write_client_file(pool, home / "client.toml")
            with only(pool, "beta"), Notebook(config) as notebook:
                assert notebook.value("float(cp.arange(4).sum())") == "6.0"
                assert len(sessions_on(pool, "beta")) == 1
                assert not [path for path in files_below(home) if has_token(path)], "it passed through a pipe"
                process.send_signal(signal.SIGTERM)  # as Slurm does before the time is over
                assert process.wait(120) == 0
                assert "The pool was stopped by its operator" in notebook.run("float(cp.arange(4).sum())").text
            with pytest.raises(PoolError):
                commands.status(pool)
        assert not processes_with(directory)
