"""Names are the field's own terms, and nothing is declared that does not work."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from .tree import FOLDERS, PACKAGES, ROOT, functions, parsed, python_files, short

EMPTY_NAMES = re.compile(r"(^|_)(utils?|helpers?|managers?|misc|core2|stuff)($|_|\.)")
OPEN_ENDS = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b|@pytest\.mark\.skip\(")


def test_no_module_has_an_empty_name() -> None:
    assert not [short(path) for path in python_files() if EMPTY_NAMES.search(path.stem)]


def test_no_class_or_function_has_an_empty_name() -> None:
    named = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    found = [
        f"{short(path)}:{node.lineno} {node.name}"
        for path in python_files(*PACKAGES)
        for node in ast.walk(parsed(path))
        if isinstance(node, named) and EMPTY_NAMES.search(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", node.name).lower())
    ]
    assert not found


def test_no_end_is_left_open() -> None:
    found = [
        f"{short(path)}:{number}"
        for path in python_files()
        if path.name != "test_names.py"
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if OPEN_ENDS.search(line)
    ]
    assert not found


def test_no_function_is_a_stub() -> None:
    """Outside of protocols and declarations for the type checker, a body is not ``...``."""
    found = [
        f"{short(path)}:{function.lineno} {function.name}"
        for path in python_files(*PACKAGES)
        for function in set(functions(path)) - declarations(path)
        if ast.unparse(function.body[-1]) == "..."
    ]
    assert not found


def test_no_function_only_says_that_it_is_missing() -> None:
    """A method may leave its work to subclasses, or refuse as CuPy's does; a function has nobody to do it."""
    found = [
        f"{short(path)}:{node.lineno} {node.name}"
        for path in python_files(*PACKAGES)
        for node in parsed(path).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and ast.unparse(node.body[-1]) in ("raise NotImplementedError", "raise NotImplementedError()")
    ]
    assert not found


def declarations(path: Path) -> set[ast.AST]:
    """Return the functions of ``path`` that are there for their signature only."""
    found: set[ast.AST] = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.ClassDef) and any("Protocol" in ast.unparse(base) for base in node.bases):
            found.update(node.body)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            found.update(node.body)
    for function in functions(path):
        if {"abstractmethod", "overload"} & {ast.unparse(d).split(".")[-1] for d in function.decorator_list}:
            found.add(function)
    return found


def test_the_top_of_the_tree_is_as_agreed() -> None:
    assert not [folder for folder in FOLDERS if not (ROOT / folder).is_dir()]


def test_every_package_says_what_it_is() -> None:
    silent = [
        short(path)
        for path in python_files(*PACKAGES)
        if not ast.get_docstring(parsed(path)) and path.read_text().strip()
    ]
    assert not silent
