"""The command line's own words, and what `workbench lab` makes of them."""

from __future__ import annotations

import io
import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest

from gpu_backend.gateway.entitlements import SETTABLE
from gpu_backend.pool import invitation
from gpu_backend.pool.invitation import Invitation
from gpu_backend.transport import curve
from gpu_backend.wire.errors import PoolRefusal
from kernelproxy.session.amounts import bytes_from_words
from workbench import cli, connecting
from workbench.commands import lab
from workbench.examples import copy_examples, examples_directory
from workbench.sharing import since_day


def parsed(*words: str) -> Namespace:
    parser = ArgumentParser()
    lab.configure(parser)
    return parser.parse_args(words)


@pytest.mark.parametrize("said", ["auto", "cpu", "2", "64"])
def test_what_a_pool_of_ones_own_offers_or_how_many_devices_a_notebook_has(said: str) -> None:
    assert parsed("--devices", said).devices == parsed("--device", said).devices == said


@pytest.mark.parametrize("said", ["0", "-1", "65", "gpu", "1.5"])
def test_what_is_neither_is_refused(said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parsed(f"--devices={said}")
    assert f"{said!r} is none of auto, cuda, cpu, and no number from 1 to 64" in capsys.readouterr().err


@pytest.mark.parametrize("said", ["0", "99999", "-1", "http", "8888.5"])
def test_what_is_no_port_is_refused(said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parsed(f"--port={said}")
    assert ended.value.code == 2
    assert f"{said!r} is no port: a whole number from 1 to 65535" in capsys.readouterr().err


def test_what_joins_with_no_address_of_its_own_is_told_by_the_option(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(invitation.token_of(Invitation(b"x" * 40, curve.generate()))))
    for host, said in (("203.0.113.7", "cannot be heard at --listen = "), ("a b", "--listen: 'a b' is no name")):
        sys.stdin.seek(0)
        words = ("node", "join", "tcp://h:1", "--listen", host, "--state", str(tmp_path / "node"))
        assert cli.main(words) == 1
        told = capsys.readouterr().err
        assert said in told
        assert "executor_host" not in told


@pytest.mark.parametrize(
    ("words", "attached"),
    [
        (["connect", "tcp://h:1", "--server-key", "-abc"], ["connect", "tcp://h:1", "--server-key=-abc"]),
        (["pool", "keys", "revoke", "--key", "--x"], ["pool", "keys", "revoke", "--key=--x"]),
        (["pool", "keys", "--key=a", "b"], ["pool", "keys", "--key=a", "b"]),
        (["pool", "keys", "--key"], ["pool", "keys", "--key"]),
        ([], []),
    ],
)
def test_a_key_may_begin_with_a_hyphen(words: list[str], attached: list[str]) -> None:
    assert cli.with_keys_attached(words) == attached


def test_every_command_is_there_and_has_json(capsys: pytest.CaptureFixture[str]) -> None:
    parts = ("up", "down", "status", "users", "keys", "shares", "quotas", "usage", "top")
    for command in ("lab", "connect", "doctor", "install", *(f"pool {part}" for part in parts)):
        with pytest.raises(SystemExit) as ended:
            cli.main([*command.split(), "--help"])
        assert ended.value.code == 0
        assert "--json" in capsys.readouterr().out


@pytest.mark.parametrize("noun", ["users", "keys", "shares", "quotas"])
def test_every_noun_of_a_pool_is_listed_by_the_same_word(noun: str) -> None:
    for words in ((), ("list",), ("show",)):
        assert cli.parsed(("pool", noun, *words)).action == "list"


def test_all_that_an_operator_can_set_has_an_option() -> None:
    given = {**vars(cli.parsed(("pool", "shares"))), **vars(cli.parsed(("pool", "quotas")))}
    options = {"memory_bytes" if name == "memory" else name for name in given}
    assert not SETTABLE.keys() - options


def test_what_a_command_does_not_know_is_refused_with_its_own_usage(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (("pool", "usage", "--nonsense"), ("pool", "top", "nonsense"), ("doctor", "nonsense")):
        with pytest.raises(SystemExit) as ended:
            cli.main(words)
        assert ended.value.code == 2
        command = " ".join(words[:-1])
        told = capsys.readouterr().err
        assert f"workbench {command}: error: unrecognized arguments: {words[-1].split()[0]}" in told
        assert told.startswith(f"usage: workbench {command} ")


@pytest.mark.parametrize("command", ["down", "status", "reload"])
def test_where_there_is_no_pool_a_command_says_so(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(("pool", command, "--state", str(tmp_path / "typo"), "--json")) == 1
    told = capsys.readouterr()
    assert f"There is no pool in {tmp_path / 'typo'}." in told.err
    assert told.out == ""
    assert not (tmp_path / "typo").exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("pool users add", "NAME is missing. Run `workbench pool users add NAME`."),
        ("pool users remove", "NAME is missing."),
        ("pool keys make --user ada", "--file is missing."),
        ("pool keys add --user ada", "--key is missing."),
        ("pool keys revoke", "--key is missing."),
        ("pool quotas set", "Whose they are, user NAME or group NAME, is missing."),
        ("pool quotas set user", "NAME is missing."),
        ("pool quotas set user ada", "What is to be set is missing."),
        ("pool quotas set user ada --memory much", "'much' is no amount of memory"),
        ("pool quotas set user ada --sessions many", "sessions is a number"),
        ("pool shares set group a --group b", "A user belongs to a group"),
        ("run --class gold x.py", "The option --class is to be production"),
        ("run --devices 0 x.py", "The option --devices is to be"),
        ("run --memory", "The option --memory needs a value."),
        ("pool usage --since yesterday", "'yesterday' is no day"),
    ],
)
def test_what_is_no_command_line_is_told_so_by_name_and_status(
    words: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state = ["--state", str(tmp_path)] if words.startswith("pool") else []
    assert cli.main([*words.split(), *state]) == 2
    assert capsys.readouterr().err.startswith(f"error: {told}")


@pytest.mark.parametrize("option", ["--devices", "--device"])
def test_what_a_pool_offers_is_said_alike(option: str) -> None:
    assert parsed(option, "cpu").devices == cli.parsed(("pool", "up", "--devices", "cpu")).devices


def test_options_for_jupyterlab_are_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    words = parsed("--port", "9999", "--no-browser", "--", "--ServerApp.log_level=DEBUG")
    options = lab.jupyter_options(words, Path("/notebooks"), "examples")
    assert "--ServerApp.root_dir=/notebooks" in options
    assert "--LabApp.default_url=/lab/tree/examples" in options
    assert "--ServerApp.port=9999" in options
    assert "--ServerApp.port_retries=0" in options, "an explicit port is that one or none"
    assert options[-2:] == ["--no-browser", "--ServerApp.log_level=DEBUG"]
    assert "--allow-root" not in options


def test_nothing_is_asked_of_other_machines() -> None:
    options = lab.jupyter_options(parsed(), Path("/notebooks"), "")
    assert "--LabApp.news_url=None" in options
    assert any(option.endswith("NeverCheckForUpdate") for option in options)
    assert not [option for option in options if option.startswith("--LabApp.default_url")]


@pytest.mark.usefixtures("runtime_directory")
def test_two_labs_hold_a_place_each(tmp_path: Path) -> None:
    first, first_lock = lab.take_place(tmp_path)
    second, second_lock = lab.take_place(tmp_path)
    assert first.root != second.root
    os.close(first_lock)
    third, third_lock = lab.take_place(tmp_path)
    assert third.root == first.root
    for lock in (second_lock, third_lock):
        os.close(lock)


def test_examples_are_copied_and_what_a_person_changed_stays(tmp_path: Path) -> None:
    source = examples_directory()
    assert source is not None
    there = copy_examples(tmp_path / "examples")
    assert [notebook.name for notebook in there] == sorted(path.name for path in source.glob("*.ipynb"))
    there[0].write_text("changed")
    there[1].unlink()
    assert copy_examples(tmp_path / "examples") == there
    assert there[0].read_text() == "changed"
    assert there[1].read_bytes() == (source / there[1].name).read_bytes()


@pytest.mark.parametrize(
    "refuse",
    [
        lambda long: connecting.connect(long),
        lambda long: connecting.connect("localhost:7733", long),
        lambda long: since_day(long, date(2026, 1, 1)),
        lambda long: bytes_from_words(long),
    ],
)
def test_a_refusal_repeats_no_more_than_a_line_of_what_was_given(refuse: Callable[[str], object]) -> None:
    long = 300 * "x"
    with pytest.raises((PoolRefusal, ValueError), match=r"'x{59}…'") as told:
        refuse(long)
    assert long not in str(told.value)
