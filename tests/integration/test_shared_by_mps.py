"""A device that is shared by MPS: its group computes on it at the same time and nobody else does, and who is harmed by
a fault is told. The daemon is a played one, and the device a CPU that can break."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from gpu_backend.engine.detached import ProcessId, end, read_identity
from gpu_backend.node.mps_processes import left_of
from gpu_backend.pool import commands, shares
from gpu_backend.pool import settings as pool_settings
from gpu_backend.pool.settings import PoolSettings, SharedByMps
from tests.group_pool import GroupPool
from tests.integration.notebook_pool import cpu_pool, sessions, wait_until
from tests.played_mps import install_mps, process_called, use

pytestmark = pytest.mark.timeout(240)

FRAIL = (sys.executable, str(Path(__file__).with_name("frail_executor.py")))
BEGIN = "x = cp.arange(1000.0); float(x.sum())"
BREAK = "cp.RawKernel('break', 'f')((1,), (1,), ()); cp.cuda.Device().synchronize()"


def settings(cpu_devices: int = 1) -> PoolSettings:
    shared = {0: SharedByMps(group="vision", threads_percent=50)}
    return PoolSettings(
        devices="cpu", cpu_devices=cpu_devices, devices_shared_by_mps=shared, executor_command=FRAIL, stop_seconds=2
    )  # fmt: skip


def kill(note: Path) -> ProcessId:
    """Kill the process that is noted there, without a word."""
    victim = read_identity(note)
    assert victim is not None
    os.kill(victim.pid, signal.SIGKILL)
    return victim


@pytest.fixture
def pool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[GroupPool]:
    played = tmp_path / "played"
    played.mkdir()
    use(monkeypatch, install_mps(played))
    with cpu_pool(tmp_path, settings()) as state:
        own = GroupPool(state)
        wait_until(lambda: own.standing.is_ready)
        yield own
    assert not list(left_of(own.folder)), "a pool that is down leaves no daemon"


def test_only_its_group_computes_on_it(pool: GroupPool) -> None:
    (device,) = commands.status(pool.state).devices
    assert device.space == "MPS, for group 'vision', each at most 50 % of its multiprocessors"
    assert (device.policy, device.ailment) == ("driver", "")
    with pool.notebook("ada") as ada, pool.notebook("eve") as eve:
        assert ada.value(BEGIN) == "499500.0"
        refused = eve.run(BEGIN)
        assert "shared by MPS and serve a group each, 'vision', whose sessions end with each other" in repr(refused)
        assert [one.user for one in sessions(pool.state)] == ["ada"]
        shares.set_group(pool.state, "eve", "vision")
        assert eve.value(BEGIN) == "499500.0"


def test_the_fault_of_one_is_told_to_the_others_and_all_go_on_with_another_daemon(pool: GroupPool) -> None:
    with ExitStack() as stack:
        ada, bob = (stack.enter_context(pool.notebook(name)) for name in ("ada", "bob"))
        for one in (ada, bob):
            assert one.value(BEGIN) == "499500.0"
        before = pool.standing.daemon
        broken = ada.run(BREAK)
        assert "break" in repr(broken)
        assert "share this device by MPS: the fault may be another's" in broken.notes
        wait_until(lambda: pool.standing.is_ready and pool.standing.daemon != before)
        told = bob.run("float(x.sum())")
        assert told.error, "what it held was on the device that failed"
        assert (
            "Another session of group 'vision' on the same device failed, and as they share it by MPS this one ended "
            "with it; its arrays are lost." in repr(told)
        )
        assert ada.run("float(x.sum())").error, "its arrays are lost as well"
        for one in (ada, bob):
            assert one.value(BEGIN) == "499500.0"
        assert process_called(before) is None


def test_a_daemon_that_is_killed_ends_its_sessions_and_they_are_told(pool: GroupPool) -> None:
    with pool.notebook("ada") as ada:
        assert ada.value(BEGIN) == "499500.0"
        name, executor = pool.standing.daemon, ProcessId.of(ada.executor_pid())
        before = process_called(name)
        assert before is not None
        assert executor is not None
        end(before, 0.0)
        wait_until(lambda: pool.standing.is_ready and pool.standing.daemon != name)
        wait_until(lambda: not executor.is_running)
        told = ada.run("float(x.sum())")
        assert "The MPS daemon by which group 'vision' shares the device has ended" in repr(told)
        assert ada.value(BEGIN) == "499500.0"


def test_agent_and_keeper_are_killed_and_no_session_notices(pool: GroupPool) -> None:
    with pool.notebook("ada") as ada:
        assert ada.value(BEGIN) == "499500.0"
        before, epoch = pool.standing, sessions(pool.state)[0].epoch
        agent, keeper = pool.state.process_file("agent"), pool.folder / "process.json"
        victim = kill(agent)
        wait_until(lambda: read_identity(agent) not in (None, victim))
        log = pool.folder / "log"
        assert log.read_text().count("clients compute by the daemon") == 1, "the next agent adopted the keeper"
        kill(keeper)
        wait_until(lambda: log.read_text().count("clients compute by the daemon") == 2)
        assert ada.value("float(x.sum())") == "499500.0"
        assert pool.standing == before
        assert [one.epoch for one in sessions(pool.state)] == [epoch]


def test_a_mode_that_is_taken_back_ends_the_daemon_behind_its_last_session(pool: GroupPool) -> None:
    daemon = process_called(pool.standing.daemon)
    assert daemon is not None
    with pool.notebook("ada") as ada:
        assert ada.value(BEGIN) == "499500.0"
        plain = settings().model_copy(update={"devices_shared_by_mps": {}})
        pool.state.settings_file.write_text(pool_settings.render(plain))
        commands.reload(pool.state)
        wait_until(lambda: [one.space for one in commands.status(pool.state).devices] == [""])
        with pool.notebook("eve") as eve:
            assert eve.value(BEGIN) == "499500.0"
        assert ada.value("float(x.sum())") == "499500.0"
        assert daemon.is_running
    wait_until(lambda: not daemon.is_running)


def test_where_there_is_no_daemon_nobody_begins_and_it_is_said_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    played = tmp_path / "played"
    played.mkdir()
    use(monkeypatch, install_mps(played, is_client=False))
    with cpu_pool(tmp_path, settings(cpu_devices=2)) as state:
        pool = GroupPool(state)
        wait_until(lambda: commands.status(state).devices[0].ailment)
        assert commands.status(state).devices[0].ailment == "CUDA begins without MPS there"
        with pool.notebook("ada") as ada:
            assert ada.value(BEGIN) == "499500.0"
            assert [one.device for one in sessions(state)] == [1]
