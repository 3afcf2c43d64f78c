"""The keeper of an MPS daemon as a process, with a played daemon: it says how that stands, and leaves nothing."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from gpu_backend.engine.detached import end, wait_gone
from gpu_backend.node import mps_daemon
from gpu_backend.node.kept import CONFIG
from gpu_backend.node.mps_files import DaemonConfig, MpsSharing, Standing, pipe_of, standing, way_to
from gpu_backend.node.mps_processes import left_of, sweep_all
from tests.integration.notebook_pool import wait_until
from tests.played_mps import install_mps, process_called, use

pytestmark = pytest.mark.timeout(60)

Keeper = Callable[[], "subprocess.Popen[bytes]"]
CONFIG_OF_ONE = DaemonConfig(visible="GPU-1")


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    own = tmp_path / "m" / "0"
    own.mkdir(parents=True)
    (own / CONFIG).write_bytes(msgspec.json.encode(CONFIG_OF_ONE))
    yield own
    sweep_all(tmp_path)


@pytest.fixture
def keeper(directory: Path) -> Iterator[Keeper]:
    started: list[subprocess.Popen[bytes]] = []

    def start() -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "gpu_backend.node.mps_daemon", str(directory)]
        started.append(subprocess.Popen(command, stderr=subprocess.DEVNULL))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


def stands(directory: Path) -> Standing:
    return standing(directory) or Standing()


def begin(directory: Path, keeper: Keeper) -> subprocess.Popen[bytes]:
    process = keeper()
    wait_until(lambda: stands(directory).is_ready)
    return process


def test_it_is_ready_once_a_client_has_computed_and_ends_with_all_it_started(
    directory: Path, keeper: Keeper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, install_mps(tmp_path))
    monkeypatch.setenv("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "0=1G")
    process = begin(directory, keeper)
    daemon = process_called(stands(directory).daemon)
    assert daemon is not None
    assert (directory / "l" / "visible").read_text() == "GPU-1\n"
    assert pipe_of(directory).stat().st_mode & 0o777 == 0o700, "other accounts do not reach it"
    assert b"CUDA_MPS_PINNED" not in Path(f"/proc/{daemon.pid}/environ").read_bytes(), "the operator's own are not ours"
    assert list(left_of(directory)) == [daemon]
    process.terminate()
    assert process.wait() == 0
    assert wait_gone(daemon, 5.0)
    assert stands(directory) == Standing()


def test_a_keeper_that_is_killed_leaves_the_daemon_to_the_next(
    directory: Path, keeper: Keeper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else every session of the device would end with it."""
    use(monkeypatch, install_mps(tmp_path))
    process = begin(directory, keeper)
    before = stands(directory)
    process.kill()
    process.wait()
    assert process_called(before.daemon) is not None
    (directory / "standing.json").unlink()
    begin(directory, keeper)
    assert stands(directory) == before


def test_a_daemon_that_is_killed_is_told(
    directory: Path, keeper: Keeper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, install_mps(tmp_path))
    process = begin(directory, keeper)
    daemon = process_called(stands(directory).daemon)
    assert daemon is not None
    end(daemon, 0.0)
    assert process.wait() == 1
    assert "its daemon has ended" in stands(directory).problem
    assert not stands(directory).daemon


@pytest.mark.parametrize(
    ("played", "said"),
    [
        ({"is_client": False}, "CUDA begins without MPS there"),
        ({"status": 805}, r"the CUDA driver refused cuDevicePrimaryCtxRetain \(status 805\) to a client of its daemon"),
        ({"value": 6}, "what a client computes comes out wrong"),
    ],
)
def test_why_no_client_computes_is_said_and_nothing_is_left(
    directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keeper: Keeper, played: dict[str, int], said: str
) -> None:
    use(monkeypatch, install_mps(tmp_path, **played))  # type: ignore[arg-type]
    assert keeper().wait() == 1
    assert re.search(said, stands(directory).problem)
    assert not list(left_of(directory))


def test_a_daemon_that_will_not_start_is_told(
    directory: Path, keeper: Keeper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, install_mps(tmp_path))
    (tmp_path / "refused").touch()
    assert keeper().wait() == 1
    assert "its daemon" in stands(directory).problem
    assert "ended" in stands(directory).problem
    assert "no such GPU" in (directory / "log").read_text()


def test_a_machine_without_the_program_is_told_where_it_comes_from(
    directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(mps_daemon, "_ALSO_SEARCHED", ())
    problem = mps_daemon.keep(directory, CONFIG_OF_ONE)
    assert problem == "there is no nvidia-cuda-mps-control on this machine; it comes with NVIDIA's driver"


def test_two_do_not_answer_in_one_directory(
    directory: Path, keeper: Keeper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, install_mps(tmp_path))
    begin(directory, keeper)
    before = stands(directory)
    assert keeper().wait() == 2
    assert stands(directory) == before


def test_clients_have_cuda_s_own_variables_for_their_limits(directory: Path) -> None:
    plain = way_to(directory, "1-2", MpsSharing(group="vision"))
    assert plain == ("vision", "1-2", {"CUDA_MPS_PIPE_DIRECTORY": str(directory / "p")})
    bound = way_to(directory, "1-2", MpsSharing(group="vision", memory_bytes=3 << 30, threads_percent=12.5))
    assert bound.environment == plain.environment | {
        "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": "0=3072M",
        "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "12.5",
    }
