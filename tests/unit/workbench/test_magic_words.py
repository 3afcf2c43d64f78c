"""What stands behind ``%gpu``: variables are put in as IPython does, a key is as it was given, and code is code."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from workbench import magics
from workbench.magics import GpuMagics
from workbench.status import GpuStatus

#: All that may stand in a key (ZeroMQ's RFC 32).
LETTERS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


@pytest.fixture(scope="module")
def shell() -> Iterator[InteractiveShell]:
    shell = InteractiveShell(config=Config({"HistoryManager": {"enabled": False}}))
    shell.register_magics(GpuMagics(shell))
    shell.user_ns.update(n=2, pool="tcp://gpu:7733", a="no key")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(magics, "_connect", given_words.append)
        patch.setattr(magics, "_take_devices", given_words.append)
        patch.setattr(GpuStatus, "now", lambda show_all: None)
        yield shell


given_words: list[Namespace] = []


def words(shell: InteractiveShell, line: str) -> Namespace:
    """Return what the magic makes of a line."""
    given_words.clear()
    assert shell.run_cell(f"%gpu {line}").success
    (found,) = given_words
    return found


@pytest.mark.parametrize("quotation", ["'", '"', ""])
@settings(deadline=None)
@given(key=st.text(LETTERS, min_size=40, max_size=40) | st.sampled_from(["{a}$a{{}}$$" + 29 * "x", "{n}" + 37 * "$"]))
def test_a_key_is_as_it_was_given(shell: InteractiveShell, quotation: str, key: str) -> None:
    for option in ("--server-key=", "--server-key "):
        if not quotation and (key[0] == "-" or key[-1] == "?"):
            continue  # an option, or a question, to whoever reads it first
        found = words(shell, f"connect {{pool}} {option}{quotation}{key}{quotation} --drop-arrays")
        assert found.server_key.strip("'\"") == key
        assert found.word == "tcp://gpu:7733"
        assert found.drop_arrays


def test_variables_are_put_in(shell: InteractiveShell) -> None:
    assert words(shell, "devices {n}").word == words(shell, "devices $n").word == "2"
    assert words(shell, "devices {n + 1}").word == "3"
    assert words(shell, "connect $pool --server-key={a[:2]}").server_key == "no"
    given_words.clear()
    shell.run_cell("def ask(mine):\n    %gpu devices {mine}\nask(7)")
    assert [one.word for one in given_words] == ["7"]


def test_what_is_timed_is_code(shell: InteractiveShell, monkeypatch: pytest.MonkeyPatch) -> None:
    timed: list[tuple[str, ...]] = []
    monkeypatch.setattr(magics, "measure", lambda statement, setup, *_: timed.append((statement, setup)))
    assert shell.run_cell("%gpu timeit -q f({n}, '$n')").success
    assert shell.run_cell("%%gpu timeit -q m = {n}, '$n'\nf(m)").success
    assert [tuple(one.strip() for one in both) for both in timed] == [
        ("f({n}, '$n')", "pass"),
        ("f(m)", "m = {n}, '$n'"),
    ]
