"""Every command that a page or a message names is one: the command line itself takes its words, or its catalogue."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from catalog.commands import CommandError, Helped
from catalog.commands import parse as parse_catalog
from workbench import cli

from .tree import PACKAGES, markdown_files, python_files, short

FENCE = re.compile(r"^( *)```.*?\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`(workbench [^`]+)`")
#: In a message, one that lies in one line of its source and in which nothing is filled in.
IN_A_MESSAGE = re.compile(r"`(workbench [^`{}\n\"]+)`")
#: `run` is followed by Python's own command line.
OF_PYTHON = re.compile(r"workbench run\b")
PLACEHOLDER = re.compile(r"<[^>]*>")
#: What was typed is wrong, and not only short of something, as a command is that is named without its arguments.
WRONG = re.compile(r"error: (.*(?:invalid choice|unrecognized|ambiguous|not allowed).*)")


def commands(page: Path) -> list[str]:
    """Return the commands of ours that stand in a page, in its blocks and in its sentences."""
    text = page.read_text(encoding="utf-8")
    blocks = "".join(block for _, block in FENCE.findall(text)).splitlines()
    typed = [line.strip().removeprefix("$ ") for line in blocks]
    named = [" ".join(words.split()) for words in INLINE.findall(FENCE.sub("", text))]
    return [one for one in (*typed, *named) if one.startswith("workbench ")]


def wrong(command: str, capsys: pytest.CaptureFixture[str]) -> str:
    """Return what the command line has against ``command``; "" for nothing."""
    command = PLACEHOLDER.sub("word", command.partition("…")[0])
    words = shlex.split(command, comments=True)[1:]
    if words[:1] == ["catalog"]:
        try:
            if words[1:]:
                parse_catalog(words[1:], "workbench catalog")
        except Helped:
            return ""
        except CommandError as error:
            return f"{command}: {error}"
        return ""
    try:
        cli.parsed(words)
    except SystemExit:
        told = WRONG.search(capsys.readouterr().err)
        return f"{command}: {told[1]}" if told else ""
    return ""


@pytest.mark.parametrize("page", [page for page in markdown_files() if commands(page)], ids=short)
def test_a_page_names_no_other(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = [wrong(one, capsys) for one in commands(page) if not OF_PYTHON.match(one)]
    assert not [one for one in found if one]


def test_a_message_names_no_other(capsys: pytest.CaptureFixture[str]) -> None:
    named = {one for file in python_files(*PACKAGES) for one in IN_A_MESSAGE.findall(file.read_text(encoding="utf-8"))}
    assert len(named) > 20
    assert not [told for one in sorted(named) if not OF_PYTHON.match(one) and (told := wrong(one, capsys))]


@pytest.mark.parametrize(
    "command",
    [
        "workbench pool shares set USER whole_devices=1",
        "workbench pool shares set user ada --whole 1 --colour red",
        "workbench nonsense",
        "workbench catalog nonsense",
    ],
)
def test_what_is_no_command_is_found(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert wrong(command, capsys)
