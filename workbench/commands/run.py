"""``workbench run``: any Python program, its ``import cupy`` remote, everything else as plain ``python``.

The program is run by Python itself, in this very process: arguments, tracebacks, signals and exit status are Python's.
A ``sitecustomize`` on its path makes CuPy remote, also in the Python processes that the program starts.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from workbench.terminal import complain

_HELP = """\
usage: workbench run [PYTHON OPTION ...] SCRIPT [ARGUMENT ...]
       workbench run [PYTHON OPTION ...] -m MODULE [ARGUMENT ...]
       workbench run [PYTHON OPTION ...] -c CODE [ARGUMENT ...]

Run a Python program with remote CuPy. What follows `run` is Python's own command line, and the exit status is the
program's. Without a program, Python starts interactively.
"""
#: Holds nothing but ``sitecustomize.py``.
HOOK = Path(__file__).parents[1] / "remote_python"
#: Python options that hide PYTHONPATH or skip ``site``, so that CuPy would not be remote.
_ISOLATING = frozenset("IES")
#: Python options that take the next word when nothing is attached.
_WITH_VALUE = frozenset("WX")


def execute(words: Sequence[str]) -> int:
    """Become ``python words``. Returns only if there is nothing to run."""
    if words and words[0] in ("-h", "--help"):
        sys.stdout.write(_HELP)
        return 0
    isolating = isolating_option(words)
    if not isolating:
        become_python(words)
    complain(f"Python's option {isolating} keeps `workbench run` from making CuPy remote. Leave it out.")
    return 2


def become_python(words: Sequence[str]) -> NoReturn:
    """Replace this process by ``python words`` with the hook on its path."""
    path = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = f"{HOOK}{os.pathsep}{path}" if path else str(HOOK)
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, *words])


def isolating_option(words: Sequence[str]) -> str:
    """Return the option before the program that would hide our hook from Python; "" if there is none."""
    takes_next = False
    for word in words:
        if takes_next:
            takes_next = False
            continue
        if not word.startswith("-") or word in ("-", "--") or word[1] in "mc":
            return ""
        if word.startswith("--"):
            continue
        for position, letter in enumerate(word[1:], 1):
            if letter in _ISOLATING:
                return word
            if letter in _WITH_VALUE:
                takes_next = position == len(word) - 1
                break
            if letter in "mc":
                return ""
    return ""
