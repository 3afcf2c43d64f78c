"""``workbench run``: any Python program, its ``import cupy`` remote, everything else as plain ``python``.

The program is run by Python itself, in this very process: arguments, signals and exit status are Python's.
A ``sitecustomize`` on its path makes CuPy remote, also in the Python processes that the program starts.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from gpu_backend.wire.bounds import MOST_BYTES, PRIORITY
from gpu_backend.wire.errors import quoted
from kernelproxy.session import wishes
from kernelproxy.session.amounts import bytes_from_words, bytes_in_words
from kernelproxy.settings import DEVICES
from workbench.terminal import complain
from workbench.wrong_usage import WrongUsage

_HELP = """\
usage: workbench run [OPTION ...] [PYTHON OPTION ...] SCRIPT [ARGUMENT ...]
       workbench run [OPTION ...] [PYTHON OPTION ...] -m MODULE [ARGUMENT ...]
       workbench run [OPTION ...] [PYTHON OPTION ...] -c CODE [ARGUMENT ...]

Run a Python program with remote CuPy. What follows `run` is Python's own command line, and the exit status is the
program's. Without a program, Python starts interactively.

options, before Python's own:
  --class CLASS      production, interactive or best-effort
  --request PART     a guaranteed part of the device's time, 0 to 1
  --limit PART       the largest part of the device's time, 0 to 1
  --priority NUMBER  higher goes first, where the pool's policy looks at it
  --memory SIZE      device memory of the session, such as 4GiB; on each device, if it has several
  --devices NUMBER   of one machine, or a session for each; all or none
"""
#: Our own options, and the variables by which the program's session hears of them.
_OURS = {
    "--class": wishes.CLASS_VARIABLE,
    "--request": wishes.REQUEST_VARIABLE,
    "--limit": wishes.LIMIT_VARIABLE,
    "--priority": wishes.PRIORITY_VARIABLE,
    "--memory": wishes.MEMORY_VARIABLE,
    "--devices": wishes.DEVICES_VARIABLE,
}
#: Which values mean something, told by True, else by False or ValueError; and what they mean, in words.
_IS_RIGHT: dict[str, Callable[[str], bool]] = {
    "--class": wishes.CLASSES.__contains__,
    "--request": lambda value: 0 <= float(value) <= 1,
    "--limit": lambda value: 0 <= float(value) <= 1,
    "--priority": lambda value: PRIORITY.checked(int(value)) is not None,
    "--memory": lambda value: bytes_from_words(value) >= 0,
    "--devices": lambda value: DEVICES.checked(int(value)) >= 1,
}
_MEANS = {
    "--class": "production, interactive or best-effort",
    "--request": "a number from 0 to 1",
    "--limit": "a number from 0 to 1",
    "--priority": f"a whole number, {PRIORITY}",
    "--memory": f"an amount of memory such as 4GiB or 500MB, and {bytes_in_words(MOST_BYTES)} at most",
    "--devices": f"a whole number, {DEVICES}",
}
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
    variables, words = own_options(words)
    os.environ.update(variables)
    isolating = isolating_option(words)
    if not isolating:
        become_python(words)
    complain(f"Python's option {isolating} keeps `workbench run` from making CuPy remote. Leave it out.")
    return 2


def own_options(words: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Return the variables that our own options at the beginning of ``words`` set, and what is left for Python.

    Raises
    ------
    WrongUsage
        If an option has no value, or one that means nothing.
    """
    variables: dict[str, str] = {}
    rest = list(words)
    while rest and (option := rest[0].partition("="))[0] in _OURS:
        rest.pop(0)
        value = option[2] if option[1] else (rest.pop(0) if rest else "")
        if not value:
            raise WrongUsage(f"The option {option[0]} needs a value. `workbench run --help` shows them.")
        _check(option[0], value)
        variables[_OURS[option[0]]] = value
    return variables, rest


def _check(option: str, value: str) -> None:
    try:
        is_right = _IS_RIGHT[option](value)
    except ValueError:
        is_right = False
    if not is_right:
        raise WrongUsage(f"The option {option} is to be {_MEANS[option]}, not {quoted(value)}.")


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
