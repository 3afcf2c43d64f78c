"""Native code in one's own executor reads nothing of others, changes nothing, reaches nobody, books nothing on them."""

from __future__ import annotations

import os
import resource
import socket
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest

from gpu_backend.executor.config import OWN
from gpu_backend.wire.control import Ticket
from tests.attack.conftest import Tenants
from tests.attack.hostile import HungUp
from tests.attack.native import Intruder
from tests.integration.conftest import processes_with
from tests.integration.notebook_pool import wait_until

Broken = tuple[Intruder, Ticket]


def test_it_is_the_executor_that_runs_the_code(tenants: Tenants, break_in: Broken) -> None:
    """Else all that follows would show nothing."""
    intruder, ticket = break_in
    assert intruder.run("who")["pid"] == tenants.pool.executor(ticket).pid


# --- reading ----------------------------------------------------------------------------------------------------------


def test_no_byte_of_anybody_elses_memory_is_read(tenants: Tenants, break_in: Broken) -> None:
    intruder, ticket = break_in
    pids = list(tenants.others(ticket).values())
    tenants.computes(1)
    told = intruder.run("read_memory", pids=pids, needle=tenants.secret.hex())
    assert told == {"bytes": 0, "found": 0, "ways": []}


def test_no_open_file_or_shared_memory_of_others_is_taken(tenants: Tenants, break_in: Broken) -> None:
    intruder, ticket = break_in
    assert intruder.run("take_descriptors", pids=list(tenants.others(ticket).values())) == []


def test_nothing_is_told_of_other_processes(tenants: Tenants, break_in: Broken) -> None:
    intruder, ticket = break_in
    assert intruder.run("read_of_processes", pids=list(tenants.others(ticket).values())) == []


def test_no_key_record_log_or_cache_of_the_pool_is_read(tenants: Tenants, break_in: Broken) -> None:
    intruder, ticket = break_in
    files = tenants.files(ticket)
    assert str(tenants.pool.state.operator_key) in files
    assert str(tenants.pool.state.directory_file) in files
    assert intruder.run("read_files", paths=files) == []


def test_no_home_and_no_common_folder_is_read(tenants: Tenants, break_in: Broken) -> None:
    intruder, _ = break_in
    with tempfile.NamedTemporaryFile(prefix="gwb") as file:
        paths = [
            file.name,
            os.path.dirname(file.name),
            str(Path.home()),
            "/home",
            "/dev/shm",
            "/var/tmp",
            "/etc/shadow",
        ]
        assert intruder.run("read_files", paths=paths) == []


def test_nothing_of_whoever_started_the_pool_is_in_its_environment(tenants: Tenants, break_in: Broken) -> None:
    intruder, _ = break_in
    known = (
        *("PATH", "PWD", "LANG", "LC_", "TZ", "TMPDIR", "HOME", "PYTHON", "LD_", "CUDA", "CUPY", "NVIDIA", "OMP_"),
        *("MKL_", "OPENBLAS", "NUMBA", "GPU_WORKBENCH", "CXX", "CC", "VIRTUAL_ENV", "XDG_", "SSL_", "MALLOC_"),
    )
    assert [name for name in intruder.run("who")["environment"] if not name.startswith(known)] == []


# --- changing ---------------------------------------------------------------------------------------------------------


def test_no_file_of_the_pool_is_changed(tenants: Tenants, break_in: Broken) -> None:
    """Gate pages, records, kernel caches, settings and notes of who runs are among them, those about itself too."""
    intruder, ticket = break_in
    about_it = [str(path) for path in tenants.directory_of(ticket).iterdir() if path.name not in (OWN, "log")]
    assert about_it
    assert intruder.run("change_files", paths=[*tenants.files(ticket), *about_it]) == []


def test_no_file_is_made_outside_of_its_own_folder(tenants: Tenants, break_in: Broken) -> None:
    intruder, ticket = break_in
    folders = [path for path in tenants.files(ticket) if os.path.isdir(path)]
    common = ["/", "/tmp", "/var/tmp", "/dev/shm", "/etc", "/usr/local", str(Path.home()), os.path.dirname(os.__file__)]
    assert intruder.run("make_files", directories=[*folders, *common]) == []


def test_what_it_was_handed_keeps_its_size(tenants: Tenants, break_in: Broken) -> None:
    intruder, _ = break_in
    assert intruder.run("grow_descriptors") == []


# --- reaching ---------------------------------------------------------------------------------------------------------


def test_no_socket_is_to_be_had(tenants: Tenants, break_in: Broken) -> None:
    intruder, ticket = break_in
    paths = [path for path in tenants.files(ticket) if Path(path).is_socket()]
    own = [str(path) for path in tenants.directory_of(ticket).iterdir() if path.is_socket()]
    ports = [int(one.rpartition(":")[2]) for one in tenants.ada_ticket.endpoints if one.startswith("tls")]
    abstract = [line.split()[-1] for line in Path("/proc/net/unix").read_text().splitlines() if "@" in line]
    assert ports
    assert paths
    assert abstract
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ports.append(listener.getsockname()[1])
        assert intruder.run("connect", paths=[*paths, *own, *abstract], ports=ports) == []


def test_nobody_else_is_slowed(tenants: Tenants, break_in: Broken) -> None:
    intruder, _ = break_in
    with subprocess.Popen(["sleep", "60"]) as other:
        before = standing(other.pid)
        intruder.run("slow", pid=other.pid)
        after = standing(other.pid)
        other.kill()
    assert after == before
    assert os.getpriority(os.PRIO_PROCESS, 0) < 19


def standing(pid: int) -> tuple[object, ...]:
    """Return how a process stands with the system that shares out the machine."""
    affinity, policy = os.sched_getaffinity(pid), os.sched_getscheduler(pid)
    files = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    return affinity, policy, os.getpriority(os.PRIO_PROCESS, pid), files


def test_nobody_else_is_signalled_or_limited(tenants: Tenants, break_in: Broken) -> None:
    intruder, ticket = break_in
    assert intruder.run("disturb", pids=list(tenants.others(ticket).values())) == []


def test_nothing_of_the_system_is_to_be_had_that_reaches_further(tenants: Tenants, break_in: Broken) -> None:
    intruder, _ = break_in
    assert intruder.run("ask_the_system") == []


# --- spoiling ---------------------------------------------------------------------------------------------------------


def test_noise_in_all_shared_memory_books_nothing_on_others_and_stops_nobody(tenants: Tenants) -> None:
    tenants.computes(100)
    ada = tenants.pool.ada
    with tenants.intruder() as (intruder, _, ticket):
        processes = tenants.others(ticket)
        wait_until(tenants.has_all_on_its_books)
        booked = tenants.used_seconds(ada, "ada")
        intruder.run("spoil_shared_memory", rounds=50)
        with suppress(HungUp):  # whose reports cannot be may be ended at any time
            assert intruder.run("spoil_others_pages", pids=list(processes.values())) == []
            intruder.run("burn", seconds=1.0)
        assert tenants.used_seconds(ada, "ada") == pytest.approx(booked, abs=1e-6)  # written down in nanoseconds
        tenants.computes(100)
        tenants.keeps_its_processes(processes)
    tenants.computes(100)
    assert tenants.used_seconds(ada, "ada") < booked + 3600  # none of the years that the noise says


def test_time_that_it_takes_is_on_its_own_books(tenants: Tenants) -> None:
    """Whatever its executor says: code that computes without an op is seen from outside.

    Of the processor's time that is in no op the CPU device counts a tenth: the rest may have gone into messages.
    """
    on_gpu = tenants.kind == "cuda"
    least = 1 / 50 if tenants.is_traitor and not on_gpu else 1 / 3
    with tenants.intruder() as (intruder, hostile, _):
        before = tenants.used_seconds(tenants.eve, "eve")
        burnt = intruder.run("burn", seconds=6.0, on_gpu=on_gpu)
        hostile.ask(".synchronize")
        wait_until(lambda: tenants.used_seconds(tenants.eve, "eve") - before > burnt * least)


def test_no_process_of_it_outlives_its_session(tenants: Tenants) -> None:
    with tenants.intruder() as (intruder, _, _):
        left = intruder.run("leave_a_process", seconds=600)
    wait_until(lambda: not left or not Path(f"/proc/{left}").exists())


def test_its_end_leaves_nothing(tenants: Tenants) -> None:
    with tenants.intruder() as (_, _, ticket):
        directory = str(tenants.directory_of(ticket))
    wait_until(lambda: not Path(directory).exists() and not processes_with(directory))
