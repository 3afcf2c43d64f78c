"""Files stay under 400 lines, functions under 40, and the middle file stays small."""

from __future__ import annotations

from statistics import median

from .tree import PACKAGES, functions, lines_without_docstring, python_files, short

MOST_LINES_OF_A_FILE = 400
MOST_LINES_OF_A_FUNCTION = 40


def test_files_are_short() -> None:
    long = {
        short(path): n for path in python_files() if (n := len(path.read_text().splitlines())) >= MOST_LINES_OF_A_FILE
    }
    assert not long


def test_functions_are_short() -> None:
    long = {
        f"{short(path)}:{function.lineno} {function.name}": lines
        for path in python_files()
        for function in functions(path)
        if (lines := lines_without_docstring(function)) >= MOST_LINES_OF_A_FUNCTION
    }
    assert not long


def test_the_middle_file_is_small() -> None:
    assert median(len(path.read_text().splitlines()) for path in python_files(*PACKAGES)) < 200
