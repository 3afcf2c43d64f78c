"""Addresses that a pool cannot have: told before anything is started, and nothing is left of the attempt."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from gpu_backend.pool import commands, state
from gpu_backend.pool.hearing import refuse_unheard
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
