"""The catalogue where people work: the magic, its completion, and the command line."""

from __future__ import annotations

import argparse
import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from IPython.core.completer import provisionalcompleter
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

import catalog
from catalog import tryout
from catalog.commands import COMMANDS
from catalog.completion import completions
from workbench import catalog_cli, catalog_magics

MISTAKES = [
    ("lst", "no sub-command is named 'lst'; did you mean 'list'?"),
    ("show fratcos", "no system is named 'fratcos'; did you mean 'fractos'?"),
    ("try fratcos", "no system is named 'fratcos'; did you mean 'fractos'?"),
    ("list yaer=2020", "no field is named 'yaer'; did you mean 'year'?"),
    ("list sharing=tempral", "sharing has no term 'tempral'; did you mean 'temporal'?"),
    ("list foo", "'foo' is not of the form FIELD=VALUE; to look for words use search foo"),
    ("list name>=a", "name has no order to compare by; only year and claims.MEASURE have"),
    ("list --filds name", "unknown option '--filds'; did you mean '--fields'?"),
    ("compare tgs --fields intercption", "no field is named 'intercption'; did you mean 'interception'?"),
    ("search premption", "no system's entry contains 'premption'; did you mean 'preemption'?"),
    ("graph --kind builds", "relations has no term 'builds'; did you mean 'builds-on'?"),
    ("timeline --save x.nonsense", "cannot draw into x.nonsense: "),
    ("choose trusted", "'trusted' is not of the form QUESTION=ANSWER, such as trusted=no"),
    ("choose trustd=no", "no field is named 'trustd'; did you mean 'trusted'?"),
    ("choose trusted=maybe", "trusted has no term 'maybe'"),
    ("plot overhed", "measure has no term 'overhed'; did you mean 'overhead'?"),
    ("show", "the following arguments are required: NAME"),
]
EVERY = [
    "list sharing=spatial year>=2022 --sort -year,name --fields name,venue",
    "list claims.overhead<5 claims.overhead>=1 --sort -claims.overhead --fields name,claims.overhead",
    "show NVIDIA MPS",
    "search unified memory --fields name",
    "compare tgs,antman reef gemini orion --fields interception,claims.overhead",
    "choose trusted=no goal=latency",
    "plot overhead year>=2020",
    "who",
    "verdicts category=temporal-sharing",
    "timeline category=temporal-sharing",
    "graph tgs --kind compares-with",
    "cite tgs antman",
    "try rcuda",
]


@pytest.fixture(scope="module")
def ipython() -> InteractiveShell:
    """One IPython for all tests here; it keeps no history."""
    return InteractiveShell(config=Config({"HistoryManager": {"enabled": False}}))


@pytest.fixture
def shell(ipython: InteractiveShell) -> Iterator[InteractiveShell]:
    """An IPython with the magic, which forgets it afterwards."""
    catalog_magics.load(ipython)
    yield ipython
    catalog_magics.unload(ipython)


@pytest.mark.parametrize("line", EVERY)
def test_every_sub_command_returns_something_to_look_at(shell: InteractiveShell, line: str) -> None:
    result = shell.run_line_magic("catalog", line)
    bundle = result._repr_mimebundle_()
    assert bundle["text/plain"]
    assert bundle["text/html"].startswith('<div class="gpu-catalogue">')


def test_every_sub_command_is_tested() -> None:
    assert {line.split()[0] for line in EVERY} == set(COMMANDS)


def test_the_results_are_objects(shell: InteractiveShell) -> None:
    found = shell.run_line_magic("catalog", EVERY[0])
    assert [system.year for system in found] == sorted((system.year for system in found), reverse=True)
    assert all(system.year >= 2022 for system in found)
    assert found.records()[0].keys() == {"name", "venue"}
    assert shell.run_line_magic("catalog", "show nvidia mps") is catalog.get("nvidia-mps")


@pytest.mark.parametrize(("line", "sentence"), MISTAKES)
def test_a_mistake_is_one_sentence(shell: InteractiveShell, line: str, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        shell.run_line_magic("catalog", line)
    assert str(caught.value).startswith(f"%catalog: {sentence}")
    assert "\n" not in str(caught.value)


def test_a_forgotten_quotation_mark_is_a_mistake_too(shell: InteractiveShell) -> None:
    with pytest.raises(UsageError, match="No closing quotation"):
        shell.run_line_magic("catalog", 'search "unified')


def test_help_and_json_are_printed(shell: InteractiveShell, capsys: pytest.CaptureFixture[str]) -> None:
    assert shell.run_line_magic("catalog", "") is None
    said = capsys.readouterr().out
    assert all(f"%catalog {name}" in said for name in COMMANDS)
    assert shell.run_line_magic("catalog", "graph --help") is None
    assert "--kind" in capsys.readouterr().out
    assert shell.run_line_magic("catalog", "show tgs --json") is None
    assert json.loads(capsys.readouterr().out)["id"] == "tgs"


def test_try_puts_the_cell_below(shell: InteractiveShell, monkeypatch: pytest.MonkeyPatch) -> None:
    put: list[str] = []
    monkeypatch.setattr(shell, "set_next_input", put.append)
    monkeypatch.setattr(tryout, "is_ready", lambda system: False)
    shell.run_line_magic("catalog", "try rcuda")
    assert put == []
    monkeypatch.setattr(tryout, "is_ready", lambda system: True)
    shell.run_line_magic("catalog", "try rcuda")
    assert put == [catalog.get("rcuda").pool.cell.strip("\n")]
    assert put[0].startswith("import ")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("%catalog ", list(COMMANDS)),
        ("%catalog sh", ["show"]),
        ("%catalog show ant", ["antman"]),
        ("x = %catalog try rc", ["rcuda"]),
        ("%catalog compare tgs ant", ["antman"]),
        ("%catalog list sha", ["sharing="]),
        ("%catalog list sharing=te", ["temporal"]),
        ("%catalog list sharing=temporal,sp", ["spatial"]),
        ("%catalog list --so", ["--sort"]),
        ("%catalog list --sort -ye", ["year"]),
        ("%catalog compare tgs --fields year,interc", ["interception"]),
        ("%catalog graph --kind bui", ["builds-on"]),
    ],
)
def test_completion_in_the_shell(shell: InteractiveShell, text: str, words: list[str]) -> None:
    with provisionalcompleter():
        found = list(shell.Completer.completions(text, len(text)))
    assert [each.text for each in found] == words
    for each in found:
        typed = text[each.start : each.end]
        assert each.text.startswith(typed)
        assert text[: each.start] + each.text == text.removesuffix(typed) + each.text


def test_completion_leaves_other_lines_alone(shell: InteractiveShell) -> None:
    with provisionalcompleter():
        assert "show" not in [c.text for c in shell.Completer.completions("catalog sh", 10)]


def test_an_unknown_sub_command_has_nothing_to_offer() -> None:
    assert completions("nonsense t") == ("t", [])


def test_a_system_already_named_is_not_offered_again() -> None:
    assert "tgs" not in completions("compare tgs ")[1]
    assert "antman" in completions("compare tgs ")[1]


def test_unloading_leaves_nothing(shell: InteractiveShell) -> None:
    catalog_magics.load(shell)
    assert shell.Completer.custom_matchers.count(catalog_magics.catalog_matcher) == 1
    catalog_magics.unload(shell)
    assert "catalog" not in shell.magics_manager.magics["line"]
    assert catalog_magics.catalog_matcher not in shell.Completer.custom_matchers
    catalog_magics.unload(shell)


def command_line(*words: str) -> int:
    parser = argparse.ArgumentParser()
    catalog_cli.register(parser.add_subparsers())
    arguments = parser.parse_args(["catalog", *words])
    return int(arguments.execute(arguments))


@pytest.mark.parametrize("line", EVERY)
def test_the_command_line_says_the_same(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line(*line.split()) == 0
    said = capsys.readouterr().out
    assert said
    assert command_line(*line.split(), "--json") == 0
    assert json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(("line", "sentence"), MISTAKES)
def test_a_mistake_on_the_command_line(line: str, sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line(*line.split()) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"workbench catalog: {sentence}")
    assert said.err.count("\n") == 1


def test_help_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line() == 0
    assert "workbench catalog compare" in capsys.readouterr().out
    assert command_line("compare", "--help") == 0
    assert "--fields" in capsys.readouterr().out


class Window(io.StringIO):
    """What stands for a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("line", EVERY)
def test_a_terminal_gets_rich_output(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    window = Window()
    monkeypatch.setattr(sys, "stdout", window)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "100")
    assert command_line(*line.split()) == 0
    assert "\x1b[" in window.getvalue()


def test_a_figure_can_be_saved(tmp_path: Path) -> None:
    assert command_line("timeline", "--save", str(tmp_path / "t.png")) == 0
    assert (tmp_path / "t.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("words", [["--help"], ["-h"], ["list", "--help"], ["list", "-h"]])
def test_help_is_the_catalogues_own(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    from workbench.cli import main

    assert main(["catalog", *words]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    assert "workbench catalog list" in shown.out
