"""Tracebacks in IPython: the user's frames and the error; all frames on demand."""

from __future__ import annotations

import re
import sys
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

import kernelproxy
from gpu_backend.wire import codec
from kernelproxy import source_lines
from workbench.tracebacks import Tracebacks

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


class Shell:
    """An IPython shell without history that tells what it shows of an error."""

    def __init__(self) -> None:
        quiet = Config({"HistoryManager": {"enabled": False}})
        self.shell = InteractiveShell(config=quiet)
        self.tracebacks = Tracebacks(self.shell)
        self.shown = ""
        self.shell._showtraceback = self._take  # type: ignore[method-assign]

    def _take(self, kind: object, error: object, lines: list[str]) -> None:
        self.shown = _COLOURS.sub("", "\n".join(lines))

    def run(self, code: str) -> str:
        """Run a cell; return its traceback."""
        self.shown = ""
        self.shell.run_cell(code, store_history=True)
        return self.shown

    def show_last(self) -> None:
        """Show the last cell's error again, as ``%tb`` does, whatever this process is in the middle of."""
        self.shell.showtraceback((sys.last_type, sys.last_value, sys.last_traceback))


@pytest.fixture
def shell() -> Iterator[Shell]:
    made = Shell()
    made.tracebacks.load()
    yield made
    made.tracebacks.unload()


# What these raise, and where, needs no pool: the proof fails in the notebook.
_WRONG = (
    "from gpu_backend.opstream.proof import prove\n"
    "from gpu_backend.opstream.layout import contiguous\n"
    "import numpy as np\n"
    "two, four = (contiguous(shape, np.dtype('f8'), 'C') for shape in ((2, 3), (4, 5)))\n"
    "def wrong():\n"
    "    return prove('cupy.concatenate', ([two, four],))\n"
)


def test_our_frames_are_left_out(shell: Shell) -> None:
    shown = shell.run(_WRONG + "wrong()")
    assert "ValueError: All arrays must have same shape" in shown
    assert "wrong()" in shown
    assert "return prove(" in shown, "the user's own function stays"
    assert "kernelproxy/" not in shown
    assert len(shown.splitlines()) < 25


@pytest.mark.parametrize("named", ["gpu_backend/wire/codec.py", codec.__file__])
def test_frames_of_ours_are_left_out_by_either_name(shell: Shell, named: str) -> None:
    """What is compiled names its source as no path of this machine."""
    shown = shell.run(
        f"exec(compile('def decode(): raise ValueError(1)', {named!r}, 'exec'))\n"
        "def wrong():\n    return decode()\nwrong()"
    )
    assert "ValueError: 1" in shown
    assert "return decode()" in shown
    assert "wire/codec" not in shown


def test_what_is_compiled_of_ours_is_left_out(shell: Shell) -> None:
    shown = shell.run(
        "from gpu_backend.wire.codec import Codec\nfrom gpu_backend.wire.messages import ToClient\n"
        "def wrong():\n    return Codec(ToClient).decode([b'rubbish'])\nwrong()"
    )
    assert "return Codec(ToClient)" in shown
    assert "wire/codec" not in shown


def test_the_first_shortened_traceback_says_how_to_see_the_rest(shell: Shell) -> None:
    hint = "%gpu tracebacks full"
    assert hint not in shell.run("1 / 0"), "nothing was left out"
    assert hint in shell.run(_WRONG + "wrong()").splitlines()[-1]
    assert hint not in shell.run("wrong()"), "once is enough"


def test_all_frames_are_shown_on_demand_even_of_the_last_error(shell: Shell) -> None:
    shell.run(_WRONG + "wrong()")
    shell.tracebacks.is_full = True
    shell.show_last()
    assert "gpu_backend/opstream/proof/registry.py" in shell.shown
    shell.tracebacks.is_full = False
    shell.show_last()
    assert "kernelproxy/" not in shell.shown


def test_a_function_of_the_users_that_we_call_stays(shell: Shell) -> None:
    shown = shell.run(
        "from kernelproxy.calls.callbacks import Conversation, NotebookFunction\n"
        "def mine(x):\n"
        "    return x / 0\n"
        "function = NotebookFunction(mine)\n"
        "talk = Conversation([function])\n"
        "assert talk.called(function.number, (1,), {}) == (False, 'ZeroDivisionError: division by zero')\n"
        "raise talk.release()"
    )
    assert "return x / 0" in shown
    assert "kernelproxy/" not in shown


def test_a_library_that_we_call_is_as_much_ours(shell: Shell) -> None:
    shown = shell.run(
        "from kernelproxy.calls.decoding import buffer_to_array\n"
        "from gpu_backend.wire.values import Buffer\n"
        "import numpy as np\n"
        "buffer_to_array(Buffer(0, '<f8', (3,)), [b'1'])"
    )
    assert "buffer_to_array(Buffer(" in shown
    assert "kernelproxy/" not in shown
    shown = shell.run("np.broadcast_shapes((2, 3), (4, 5))")
    assert "numpy/" in shown, "what the user calls stays"


def test_a_cause_that_concerns_the_user_is_told(shell: Shell) -> None:
    shown = shell.run(
        _WRONG + "try:\n    wrong()\nexcept ValueError as error:\n    raise RuntimeError('mine') from error"
    )
    assert "All arrays must have same shape" in shown
    assert "direct cause" in shown
    assert "RuntimeError: mine" in shown
    assert "kernelproxy/" not in shown


def test_an_error_while_another_is_handled_is_told_with_it(shell: Shell) -> None:
    shown = shell.run(_WRONG + "try:\n    {}['mine']\nexcept KeyError:\n    wrong()")
    assert "KeyError: 'mine'" in shown
    assert "During handling" in shown
    assert "All arrays must have same shape" in shown
    assert "WillRaise" not in shown
    hidden = shell.run(_WRONG + "try:\n    wrong()\nexcept ValueError:\n    raise RuntimeError('mine') from None")
    assert "RuntimeError: mine" in hidden
    assert "All arrays" not in hidden, "as the user wants it"


def test_what_we_caught_ourselves_is_not_told(shell: Shell) -> None:
    ours = Path(kernelproxy.__file__).with_name("played.py")
    shell.shell.user_ns["ours"] = names = {}
    lines = "def fail():\n    try:\n        {}['a']\n    except KeyError:\n        raise ValueError('no such array')\n"
    exec(compile(lines, str(ours), "exec"), names)
    shown = shell.run("ours['fail']()")
    assert "ValueError: no such array" in shown
    assert "KeyError" not in shown
    shell.tracebacks.is_full = True
    shell.show_last()
    assert "KeyError" in shell.shown


def test_errors_keep_their_frames(shell: Shell) -> None:
    shell.run(_WRONG + "try:\n    wrong()\nexcept ValueError as error:\n    kept = error\n    raise")
    trace, files = shell.shell.user_ns["kept"].__traceback__, []
    while trace is not None:
        files.append(trace.tb_frame.f_code.co_filename)
        trace = trace.tb_next
    assert any("gpu_backend/opstream/proof" in file for file in files), "for %debug, and to be shown on demand"


@pytest.mark.parametrize("mode", ["Plain", "Context", "Verbose", "Minimal"])
def test_every_mode_of_ipython(shell: Shell, mode: str) -> None:
    shell.shell.InteractiveTB.set_mode(mode)
    shown = shell.run(
        _WRONG + "try:\n    wrong()\nexcept ValueError as error:\n    raise RuntimeError('mine') from error"
    )
    assert "mine" in shown
    assert "proof/registry.py" not in shown


def test_cells_go_by_their_numbers(shell: Shell) -> None:
    shell.run("from kernelproxy.source_lines import user_site")
    shell.run("here = user_site(0)")
    assert shell.shell.user_ns["here"].describe() == "Cell In[2], line 1: here = user_site(0)"
    shell.tracebacks.unload()
    assert source_lines.name_of_file("/tmp/a.py") == "/tmp/a.py"
    assert "gpu_backend/opstream/proof/" in shell.run(_WRONG + "wrong()")


@pytest.fixture
def told_of_threads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Have what a thread ends by as Python would print it."""
    told: list[str] = []

    def tell(ended: threading.ExceptHookArgs) -> None:
        told.append("".join(traceback.format_exception(ended.exc_type, ended.exc_value, ended.exc_traceback)))

    monkeypatch.setattr(threading, "excepthook", tell)
    return told


def test_a_thread_of_the_users_ends_with_its_own_frames(told_of_threads: list[str], shell: Shell) -> None:
    in_thread = "import threading\none = threading.Thread(target=wrong)\none.start()\none.join()"
    assert not shell.run(f"{_WRONG}{in_thread}")
    (told,) = told_of_threads
    assert "ValueError: All arrays must have same shape" in told
    assert "in wrong" in told
    assert "opstream/proof" not in told
    shell.tracebacks.is_full = True
    shell.run(in_thread)
    assert "opstream/proof/registry.py" in told_of_threads[-1]


def test_unloaded_it_leaves_threads_to_whom_they_were_left_before(told_of_threads: list[str]) -> None:
    before, made = threading.excepthook, Shell()
    made.tracebacks.load()
    assert threading.excepthook != before
    made.tracebacks.unload()
    assert threading.excepthook is before
