"""The client's settings file: what is wrong in it is told with its name, and nothing in it is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpu_backend.wire.errors import PoolRefusal, PoolUnreachable
from kernelproxy import settings
from kernelproxy.session.wishes import (
    CLASS_VARIABLE,
    DEVICES_VARIABLE,
    LIMIT_VARIABLE,
    MEMORY_VARIABLE,
    PRIORITY_VARIABLE,
    REQUEST_VARIABLE,
    Wishes,
)
from kernelproxy.settings import CONFIG_VARIABLE, ClientSettings

WAY = {"gateway": "tcp://gpu:1", "server_key": 40 * "x", "key_file": "/k"}
ELSEWHERE = ClientSettings(gateway="tcp://other:1", server_key=40 * "y", key_file=Path("/other"))


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(CONFIG_VARIABLE, str(tmp_path / "client.toml"))
    return tmp_path / "client.toml"


def write(path: Path, more: str = "", **way: str) -> None:
    path.write_text("".join(f"{name} = '{value}'\n" for name, value in way.items()) + more)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("devices = 1.5", "devices: it is to be a whole number, 1 to 64, not 1.5."),
        ("devices = 99999999999999999999", "devices: it is to be a whole number, 1 to 64, not "),
        ("devices = 0", "devices: it is to be a whole number, 1 to 64, not 0."),
        ("priority = 99999999999999999999", "priority: it is to be a whole number, -1000000 to 1000000, not "),
        ("priority = -99999999999999999999", "priority: it is to be a whole number, -1000000 to 1000000, not "),
        ("request = nan", "request: it is to be a number from 0 to 1, not nan."),
        ("limit = inf", "limit: it is to be a number from 0 to 1, not inf."),
        ("host_mirror = 'perhaps'", 'host_mirror: it is to be "on", "off" or "check", not \'perhaps\'.'),
        ("memory = 4", "memory: it is to be a text between quotes, not 4."),
        ("memmory = '1 GiB'", "there is no setting 'memmory' (did you mean memory?)."),
        ("zzz = 1", "there is no setting 'zzz'."),
        ("memory = 4 GiB", "Expected newline"),
        (f"priority = {5000 * '9'}", "Exceeds the limit"),
    ],
)
def test_a_wrong_setting_is_told_by_name_with_its_file_and_stays_there(path: Path, line: str, said: str) -> None:
    write(path, f"session_class = 'production'\n{line}", **WAY)
    before = path.read_bytes()
    for read in (settings.load, lambda: settings.beside(ELSEWHERE)):
        with pytest.raises(PoolRefusal) as told:
            read()
        assert str(told.value).startswith(f"{path} is not right: {said}")
        assert "Correct it" in str(told.value)
    assert path.read_bytes() == before


@pytest.mark.parametrize("missing", WAY)
def test_a_file_that_does_not_say_where_the_pool_is_keeps_the_rest(path: Path, missing: str) -> None:
    write(path, "memory = '1 GiB'\nlanes = 2\n", **{name: value for name, value in WAY.items() if name != missing})
    with pytest.raises(PoolUnreachable, match=f"does not say where the pool is: {missing} is missing"):
        settings.load()
    kept = settings.beside(ELSEWHERE)
    assert (kept.gateway, kept.server_key, kept.key_file) == ("tcp://other:1", 40 * "y", Path("/other"))
    assert (kept.memory, kept.lanes) == ("1 GiB", 2)


def test_what_cannot_be_in_the_file_cannot_be_in_the_environment(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(path, **WAY)
    for variable, text, said in (
        (CLASS_VARIABLE, "gold", "'gold' is no class; there are production, interactive, best-effort"),
        (LIMIT_VARIABLE, "2", "2 is no part of a device: it is from 0 to 1"),
        (REQUEST_VARIABLE, "nan", "nan is no part of a device"),
        (PRIORITY_VARIABLE, "99999999999999999999", "there are -1000000 to 1000000"),
        (DEVICES_VARIABLE, 300 * "9", "what was given is no number of devices; there are 1 to 64"),
        (MEMORY_VARIABLE, "18446744073709551616", "the most is 1024.0 TiB"),
    ):
        with monkeypatch.context() as context:
            context.setenv(variable, text)
            with pytest.raises(PoolRefusal, match=f"^{variable} is not right: .*{said}"):
                Wishes().wished(settings.load())


def test_an_amount_that_is_none_is_told_with_the_file(path: Path) -> None:
    write(path, "memory = 'lots'", **WAY)
    with pytest.raises(PoolRefusal) as told:
        Wishes().wished(settings.load())
    assert str(told.value).startswith(f"memory in {path} is not right: 'lots' is no amount of memory")
