"""Addresses that a pool cannot have: told before anything is started, and nothing is left of the attempt."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from gpu_backend.engine.detached import ProcessId, write_identity
from gpu_backend.node import inventory
from gpu_backend.pool import commands, setup, state
from gpu_backend.pool.hearing import _listens_at, refuse_unheard
from gpu_backend.pool.settings import PoolSettings
from gpu_backend.wire.errors import PoolRefusal


def test_addresses_of_this_machine_are_heard() -> None:
    for host in ("", "127.0.0.1", "0.0.0.0"):
        refuse_unheard(PoolSettings(listen_host=host, advertise_host="here"), with_port=False)


@pytest.mark.parametrize("host", ["no.such.invalid", "203.0.113.7"])
def test_others_are_refused_by_the_setting(host: str) -> None:
    with pytest.raises(PoolRefusal, match="listen_host must be an IP address of this machine"):
        refuse_unheard(PoolSettings(listen_host=host), with_port=False)
    with pytest.raises(PoolRefusal, match="executor_host = "):
        refuse_unheard(PoolSettings(listen_host="127.0.0.1", executor_host=host), with_port=False)
    with pytest.raises(PoolRefusal, match="nodes_host must be an IP address of this machine"):
        refuse_unheard(PoolSettings(nodes_host=host), with_port=False)


def test_users_and_machines_have_a_port_each() -> None:
    with pytest.raises(PoolRefusal, match="listen_port and nodes_port are both 7800"):
        refuse_unheard(
            PoolSettings(listen_host="127.0.0.1", nodes_host="127.0.0.1", listen_port=7800, nodes_port=7800), False
        )


def test_who_listens_everywhere_must_say_a_name(tmp_path: Path) -> None:
    pool = state.at(tmp_path / "pool")
    with pytest.raises(PoolRefusal, match="--advertise"):
        commands.up(pool, PoolSettings(listen_host="0.0.0.0"))
    with pytest.raises(PoolRefusal, match="so machines that join must be told a name"):
        commands.up(pool, PoolSettings(nodes_host="0.0.0.0"))
    assert not pool.root.exists()


def test_a_port_that_somebody_has_is_refused_and_the_next_attempt_is_free(tmp_path: Path) -> None:
    pool = state.at(tmp_path / "pool")
    with socket.create_server(("127.0.0.1", 0)) as somebody:
        taken = PoolSettings(listen_host="127.0.0.1", listen_port=somebody.getsockname()[1])
        with pytest.raises(PoolRefusal, match="Address already in use"):
            commands.up(pool, taken)
    assert not pool.root.exists()
    assert not pool.runtime.exists()


def test_a_port_for_metrics_that_somebody_else_has_is_refused(tmp_path: Path) -> None:
    pool = state.at(tmp_path / "pool")
    with socket.create_server(("127.0.0.1", 0)) as somebody:
        taken = PoolSettings(metrics_port=somebody.getsockname()[1])
        with pytest.raises(PoolRefusal, match=r"Address already in use.* metrics_port; 0 is for none"):
            commands.up(pool, taken)
        refuse_unheard(taken, with_port=True, gateway=ProcessId.mine())  # the pool's own gateway has it
        refuse_unheard(taken, with_port=True, with_metrics=False)  # nobody shall keep a pool down by that port
    assert not pool.root.exists()


@pytest.mark.parametrize("name", ["listen", "nodes"])
def test_a_reload_refuses_a_port_that_somebody_else_has_and_touches_nothing(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = state.at(tmp_path / "pool")
    with socket.create_server(("127.0.0.1", 0)) as somebody, subprocess.Popen(["sleep", "600"]) as gateway:
        try:
            taken = {f"{name}_host": "127.0.0.1", f"{name}_port": somebody.getsockname()[1]}
            setup.prepare(pool, PoolSettings.model_validate(taken))
            identity = ProcessId.of(gateway.pid)
            assert identity is not None
            for role in ("supervisor", "gateway"):
                write_identity(pool.process_file(role), identity)
            monkeypatch.setattr(commands, "end_servants", lambda *_: pytest.fail("the gateway was ended"))
            with pytest.raises(PoolRefusal, match=r"Address already in use.*Nothing was changed\."):
                commands.reload(pool)
            with pytest.raises(PoolRefusal, match="Address already in use"):
                refuse_unheard(PoolSettings.model_validate(taken), with_port=True)
            assert gateway.poll() is None
        finally:
            gateway.kill()


def test_a_reload_refuses_to_insist_on_a_gpu_that_there_is_not_and_touches_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = state.at(tmp_path / "pool")
    setup.prepare(pool, PoolSettings(devices="cpu"))
    told = (pool.node / "config.json").read_bytes()
    write_identity(pool.process_file("supervisor"), ProcessId.mine())
    pool.settings_file.write_text('devices = "cuda"')
    monkeypatch.setattr(inventory, "_probe_cuda", lambda: inventory._Probe((), "there is none"))
    monkeypatch.setattr(commands, "end_servants", lambda *_: pytest.fail("something was ended"))
    with pytest.raises(PoolRefusal, match=r"No GPU can be offered here: there is none\..*Nothing was changed\."):
        commands.reload(pool)
    assert (pool.node / "config.json").read_bytes() == told


@pytest.mark.parametrize(("family", "host"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_a_port_that_the_pools_own_gateway_has_is_free_for_the_next(family: socket.AddressFamily, host: str) -> None:
    try:
        own = socket.create_server((host, 0), family=family)
    except OSError as error:
        pytest.skip(f"no {host} on this machine: {error}")
    with own:
        assert _listens_at(ProcessId.mine(), host, own.getsockname()[1])
        if family is socket.AF_INET:
            settings = PoolSettings(listen_host=host, listen_port=own.getsockname()[1])
            refuse_unheard(settings, with_port=True, gateway=ProcessId.mine())


def test_the_same_port_at_another_address_is_not_the_gateways() -> None:
    with socket.create_server(("127.0.0.1", 0)) as own:
        port = own.getsockname()[1]
        with subprocess.Popen(
            [sys.executable, "-c", _LISTENING, "127.0.0.2", str(port)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as other:
            assert other.stdout is not None
            assert other.stdout.readline() == b"listens\n"
            settings = PoolSettings(listen_host="127.0.0.2", listen_port=port)
            with pytest.raises(PoolRefusal, match="Address already in use"):
                refuse_unheard(settings, with_port=True, gateway=ProcessId.mine())
            other.communicate(b"\n")


_LISTENING = """
import socket, sys
with socket.create_server((sys.argv[1], int(sys.argv[2]))):
    print("listens", flush=True)
    sys.stdin.readline()
"""
