"""`workbench run`: a program behaves as under plain Python, and its arrays live in the pool."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpu_backend.pool.state import PoolState
from gpu_backend.wire.version import PROTOCOL_VERSION
from tests.integration.notebook_pool import cpu_pool, sessions, wait_until
from tests.integration.terminal import read_to_end

RUN = (sys.executable, "-m", "workbench", "run")
_SUM = "import cupy as cp; print(type(cp.arange(5)).__module__, float(cp.arange(5).sum()))"


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PoolState]:
    with cpu_pool(tmp_path_factory.mktemp("run")) as own:
        yield own


def run(*words: str, command: tuple[str, ...] = RUN, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*command, *words], capture_output=True, text=True, timeout=900, check=False, **options)  # type: ignore[call-overload,no-any-return]


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """A program with everything that could go differently."""
    (tmp_path / "neighbour.py").write_text("NAME = 'neighbour'\n")
    path = tmp_path / "program.py"
    path.write_text(
        "import sys, neighbour, cupy as cp\n"
        "print(sys.argv, sys.path[0], __name__, __file__, neighbour.NAME, sys.stdin.read())\n"
        "print(float(cp.arange(5).sum()))\n"
        "def fail():\n"
        "    raise ValueError('as planned')\n"
        "if 'fail' in sys.argv:\n"
        "    fail()\n"
        "sys.exit(7)\n"
    )
    return path


def test_arguments_streams_and_status_are_the_programs(pool: PoolState, script: Path) -> None:
    done = run(str(script), "-m", "--json", "x y", input="typed")
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        f"{[str(script), '-m', '--json', 'x y']} {script.parent} __main__ {script} neighbour typed",
        "10.0",
    ]
    assert done.returncode == 7
    wait_until(lambda: sessions(pool) == ())


def test_a_traceback_is_plain_pythons(pool: PoolState, script: Path) -> None:
    done = run(str(script), "fail", input="")
    plain = run(str(script), "fail", input="", command=(sys.executable, "-c", _WITH_A_FALSE_CUPY))
    assert "ValueError: as planned" in done.stderr
    assert done.stderr == plain.stderr
    assert done.returncode == plain.returncode == 1


_MISTAKE = """
import threading
import cupy as cp
def join(x):
    return cp.concatenate([x, cp.ones((2, 3))])
thread = threading.Thread(target=join, args=(cp.ones((3, 4)),))
thread.start()
thread.join()
join(cp.ones((3, 4)))
"""


def test_a_traceback_shows_the_programs_own_lines(pool: PoolState, tmp_path: Path) -> None:
    program = tmp_path / "mistake.py"
    program.write_text(_MISTAKE)
    done = run(str(program))
    assert done.returncode == 1
    files = [line.split('"')[1] for line in done.stderr.splitlines() if line.startswith("  File ")]
    assert [file for file in files if not file.endswith("threading.py")] == [str(program)] * 3
    assert done.stderr.endswith("ValueError: All arrays must have same shape except the axis to concatenate\n")
    whole = run(str(program), env={**os.environ, "GPU_WORKBENCH_TRACEBACKS": "full"})
    assert "kernelproxy" in whole.stderr


def test_on_a_terminal_it_says_that_there_are_more_frames(pool: PoolState) -> None:
    terminal, stderr = os.openpty()
    words = (*RUN, "-c", "import cupy as cp; cp.ones((2, 3)).reshape(4)")
    assert subprocess.run(words, stderr=stderr, timeout=900, check=False).returncode == 1
    os.close(stderr)
    told = read_to_end(terminal).splitlines()  # what was written may come in pieces
    os.close(terminal)
    assert told[-2].startswith("ValueError")
    assert "GPU_WORKBENCH_TRACEBACKS=full" in told[-1]


#: Runs a script with a local stand-in for CuPy, as plain Python would.
_WITH_A_FALSE_CUPY = """
import os, sys, tempfile
place = tempfile.mkdtemp()
open(os.path.join(place, "cupy.py"), "w").write("import numpy; arange = numpy.arange")
os.environ["PYTHONPATH"] = place
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


def test_a_module(pool: PoolState, script: Path) -> None:
    done = run("-m", "program", "a", input="", cwd=script.parent)
    assert done.returncode == 7
    assert f"{[str(script), 'a']} {script.parent} __main__" in done.stdout


def test_programs_that_a_program_starts_are_remote_too(pool: PoolState) -> None:
    code = f"import subprocess, sys; {_SUM}; sys.exit(subprocess.run([sys.executable, '-c', {_SUM!r}]).returncode)"
    done = run("-c", code)
    assert done.stderr == ""
    assert (
        sorted(done.stdout.splitlines()) == ["kernelproxy.calls.array_core 10.0"] * 2 or done.stdout.count("10.0") == 2
    )
    assert done.returncode == 0
    wait_until(lambda: sessions(pool) == ())


def test_a_signal_ends_the_program_as_it_would_any(pool: PoolState) -> None:
    code = "import cupy as cp; x = cp.ones(3); print(float(x[0]), flush=True)\nwhile True: float(x[0])"
    with subprocess.Popen([*RUN, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "1.0\n"
        assert len(sessions(pool)) == 1
        program.send_signal(signal.SIGINT)
        _, said = program.communicate(timeout=90)
    assert said.rstrip().endswith("KeyboardInterrupt")
    assert program.returncode == -signal.SIGINT
    wait_until(lambda: sessions(pool) == ())


def test_without_a_pool_one_sentence_ends_the_traceback() -> None:
    done = run("-c", "import cupy as cp\ncp.ones(3)", env={**os.environ, "GPU_WORKBENCH_CONFIG": "/nowhere.toml"})
    last = done.stderr.strip().splitlines()[-1]
    assert "workbench connect" in last
    assert "PoolUnreachable" in last
    assert done.returncode == 1


@pytest.mark.usefixtures("pool")
def test_a_pool_of_another_version_says_so_and_what_to_do() -> None:
    upgraded = "from gpu_backend.wire import codec; codec.PROTOCOL_VERSION += 1; codec._PREFIX = b'g\\xc8'"
    done = run("-c", f"{upgraded}\nimport cupy as cp\ncp.ones(3)")
    last = done.stderr.strip().splitlines()[-1]
    assert f"version {PROTOCOL_VERSION}, this side speaks {PROTOCOL_VERSION + 1}" in last
    assert "workbench pool down" in last


def test_a_program_that_needs_no_cupy_needs_no_pool() -> None:
    done = run("-c", "print(1)", env={**os.environ, "GPU_WORKBENCH_CONFIG": "/nowhere.toml"})
    assert (done.stdout, done.stderr, done.returncode) == ("1\n", "", 0)


def test_isolated_python_is_refused() -> None:
    done = run("-I", "-c", "print(1)")
    assert done.returncode == 2
    assert "-I" in done.stderr
    assert done.stdout == ""


def test_help() -> None:
    assert "exit status" in run("--help").stdout
