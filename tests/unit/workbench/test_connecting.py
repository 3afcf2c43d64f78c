"""`workbench connect` with what a newcomer types: an address without its scheme, keys that are none or another's."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from gpu_backend.transport import curve
from gpu_backend.wire.control import Denied
from gpu_backend.wire.errors import ForeignServer, NotAuthorized, PoolRefusal, PoolUnreachable
from kernelproxy import settings
from tests.unit.workbench.scripted_gateway import ScriptedGateway
from workbench import connecting
from workbench.terminal import complain


def test_the_scheme_need_not_be_typed(gateway: ScriptedGateway) -> None:
    connected = connecting.connect(gateway.endpoint.removeprefix("tcp://"), gateway.keys.public.decode())
    assert connected.settings.gateway == gateway.endpoint


@pytest.mark.parametrize(
    "address",
    [
        "gpu.example.org",
        "http://gpu:7733",
        "tcp://gpu",
        "gpu:port",
        "tcp://:7733",
        "gpu:70000",
        "x://y:1",
        "a..b:7733",
        "a b:7733",
    ],
)
def test_what_is_no_address_is_told_so(gateway: ScriptedGateway, address: str) -> None:
    with pytest.raises(PoolRefusal, match=r"write it like tcp://gpu\.example\.org:7733"):
        connecting.connect(address, gateway.keys.public.decode())


def test_who_forgets_the_pools_key_is_told_so_where_no_pool_is_set_up_yet(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(settings.CONFIG_VARIABLE, str(tmp_path / "client.toml"))
    with pytest.raises(PoolUnreachable, match=r"To connect to tcp://gpu:7733 its public key .*: add --server-key\."):
        connecting.connect("gpu:7733")
    with pytest.raises(PoolUnreachable, match="No pool is set up here"):
        connecting.connect()


def test_what_is_no_host_of_executors_is_told_so(gateway: ScriptedGateway) -> None:
    before = settings.load()
    for host in ("a b", "a..b", "http://a", "a\n"):
        with pytest.raises(PoolRefusal, match=r"--executor-host: .* is no name or address of a host"):
            connecting.connect(executor_host=host)
    assert settings.load() == before
    for host in ("localhost", "10.0.0.1", "[::1]", "::1", ""):
        assert connecting.connect(executor_host=host).settings.executor_host == host


def test_what_is_no_server_key_is_told_so(gateway: ScriptedGateway) -> None:
    for key in ("short", "x" * 39, "~" * 40):
        with pytest.raises(PoolRefusal, match="no pool's public key: it has 40 characters"):
            connecting.connect(gateway.endpoint, key)


def test_nothing_that_a_pool_says_is_obeyed_by_the_terminal(
    gateway: ScriptedGateway, capsys: pytest.CaptureFixture[str]
) -> None:
    gateway.answer = lambda _: Denied(0, "quota", "sorry \x1b]0;mine\x07\x1b[2J\x1b]52;c;ZXZpbA==\x07", "größe\nfirst")
    with pytest.raises(PoolRefusal) as told:
        connecting.connect(gateway.endpoint, gateway.keys.public.decode())
    complain(str(told.value))
    shown = capsys.readouterr().err
    assert "größe\nfirst" in shown
    assert shown.replace("\n", "").isprintable()


def test_a_wrong_server_key_is_not_told_as_a_key_that_the_operator_should_add(gateway: ScriptedGateway) -> None:
    before = settings.load()
    with pytest.raises(ForeignServer) as told:
        connecting.connect(gateway.endpoint, curve.generate().public.decode())
    assert "is not the pool whose public key we hold" in str(told.value)
    assert "Your own key was not looked at" in str(told.value)
    assert "Once they have added it" not in str(told.value)
    assert settings.load() == before


def test_a_key_that_the_pool_does_not_know_is_shown_for_its_operator(gateway: ScriptedGateway) -> None:
    public = curve.load(settings.load().key_file).public.decode()
    gateway.allowed.replace([])
    with pytest.raises(NotAuthorized) as told:
        connecting.connect()
    assert not isinstance(told.value, ForeignServer)
    (line,) = [line for line in str(told.value).splitlines() if line.startswith("Your public key")]
    assert shlex.split(line.partition(": ")[2]) == [public]
    assert "or it was revoked there" in str(told.value)


def test_where_executors_are_reached_is_kept_for_the_same_pool_only(gateway: ScriptedGateway) -> None:
    connecting.connect(executor_host="localhost")
    assert settings.load().executor_host == "localhost"
    connecting.connect()
    assert settings.load().executor_host == "localhost"
    port = gateway.endpoint.rpartition(":")[2]
    connecting.connect(f"tcp://localhost:{port}", gateway.keys.public.decode())
    assert settings.load().executor_host == ""
    with pytest.raises(PoolUnreachable, match="add --server-key"):
        connecting.connect("tcp://127.0.0.1:9")


def test_ones_key_stays_ones_key_for_the_same_pool_only(gateway: ScriptedGateway) -> None:
    address, server_key = gateway.endpoint, gateway.keys.public.decode()
    own = settings.load().key_file
    theirs = own.with_name("from-the-operator.key")
    curve.save(curve.load(own), theirs)
    assert connecting.connect(key_file=theirs).settings.key_file == theirs
    assert connecting.connect(address, server_key).settings.key_file == theirs
    assert connecting.connect(address).settings.key_file == theirs, "of the same pool the server's key is known"
    port = address.rpartition(":")[2]
    elsewhere = connecting.connect(f"tcp://localhost:{port}", server_key)
    assert elsewhere.settings.key_file == connecting.default_key_file()
