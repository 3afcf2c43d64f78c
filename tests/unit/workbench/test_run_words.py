"""``workbench run``: which of Python's own options are let through, and what the hook does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpu_backend.wire.errors import PoolRefusal
from workbench.commands import run


def test_our_own_options_come_before_pythons() -> None:
    variables, rest = run.own_options(["--class", "best-effort", "--limit=0.5", "-u", "s.py", "--class", "x"])
    assert variables == {"GPU_WORKBENCH_CLASS": "best-effort", "GPU_WORKBENCH_LIMIT": "0.5"}
    assert rest == ["-u", "s.py", "--class", "x"]
    assert run.own_options(["s.py"]) == ({}, ["s.py"])
    for words in (["--memory"], ["--memory="]):
        with pytest.raises(PoolRefusal, match="--memory needs a value"):
            run.own_options(words)


@pytest.mark.parametrize(
    ("option", "value", "meant"),
    [
        ("--memory", "much", "an amount of memory such as 4GiB"),
        ("--class", "besteffort", "production, interactive or best-effort"),
        ("--request", "2", "a number from 0 to 1"),
        ("--request", "nan", "a number from 0 to 1"),
        ("--limit", "half", "a number from 0 to 1"),
        ("--priority", "1.5", "a whole number"),
        ("--priority", "99999999999999999999", "a whole number, -1000000 to 1000000"),
        ("--memory", "18446744073709551616", "an amount of memory such as 4GiB or 500MB, and 1024.0 TiB at most"),
        ("--devices", "0", "a whole number, 1 to 64"),
        ("--devices", "two", "a whole number, 1 to 64"),
        ("--devices", "99999999999999999999", "a whole number, 1 to 64"),
    ],
)
def test_a_value_that_means_nothing_is_one_sentence_before_the_program_starts(
    option: str, value: str, meant: str
) -> None:
    with pytest.raises(PoolRefusal, match=f"^The option {option} is to be {meant}.*, not {value!r}[.]$"):
        run.own_options([option, value, "script.py"])


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["script.py", "-I"], ""),
        (["-m", "module", "-E"], ""),
        (["-mmodule"], ""),
        (["-um", "module", "-S"], ""),
        (["-c", "print()", "-I"], ""),
        (["-X", "importtime", "script.py", "-I"], ""),
        (["-W", "error::ImportWarning", "-I", "s.py"], "-I"),
        (["-Werror::ImportWarning", "s.py"], ""),
        (["-uI", "s.py"], "-uI"),
        (["-E", "s.py"], "-E"),
        (["-S"], "-S"),
        (["--version"], ""),
        (["-"], ""),
        ([], ""),
    ],
)
def test_options_that_would_hide_the_hook(words: list[str], found: str) -> None:
    assert run.isolating_option(words) == found


def test_the_next_sitecustomize_runs_too(tmp_path: Path) -> None:
    """A user's own sitecustomize, or the distribution's, is not lost behind ours."""
    (tmp_path / "sitecustomize.py").write_text("import builtins; builtins.theirs = __name__")
    environment = {**os.environ, "PYTHONPATH": f"{run.HOOK}{os.pathsep}{tmp_path}"}
    code = "import sys; print(theirs, sys.modules['sitecustomize'].__file__)"
    printed = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True, timeout=200
    )
    assert printed.stderr == ""
    assert printed.stdout.split() == ["sitecustomize", str(tmp_path / "sitecustomize.py")]
