"""Rules that are about lines of code: what may be caught, what may be unpickled, how a test waits."""

from __future__ import annotations

import ast

from .tree import PACKAGES, functions, parsed, python_files, short

UNSAFE = {"pickle", "cPickle", "cloudpickle", "dill", "marshal", "shelve"}


def test_a_broad_except_gives_its_reason() -> None:
    """A comment stands on the line of the ``except`` or on the lines that touch it."""
    found = []
    for path in python_files(*PACKAGES):
        lines = path.read_text().splitlines()
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ExceptHandler) and is_broad(node):
                near = lines[max(node.lineno - 2, 0) : node.lineno + 1]
                if not any("#" in line for line in near):
                    found.append(f"{short(path)}:{node.lineno}")
    assert not found


def is_broad(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(isinstance(name, ast.Name) and name.id in ("Exception", "BaseException") for name in caught)


def test_nothing_is_unpickled() -> None:
    found = [
        f"{short(path)}:{node.lineno}"
        for path in python_files(*PACKAGES)
        for node in ast.walk(parsed(path))
        if (isinstance(node, ast.Import) and UNSAFE & {name.name.split(".")[0] for name in node.names})
        or (isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in UNSAFE)
    ]
    assert not found


def test_annotations_are_never_evaluated_at_import() -> None:
    annotated = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.AnnAssign)
    found = [
        short(path)
        for path in python_files()
        if any(isinstance(node, annotated) for node in ast.walk(parsed(path)))
        and "from __future__ import annotations" not in path.read_text()
    ]
    assert not found


def test_tests_wait_for_states() -> None:
    """A ``sleep`` in a test stands inside a loop that asks for a state."""
    found = []
    for path in python_files("tests"):
        for function in functions(path):
            looped = {
                id(n) for loop in ast.walk(function) if isinstance(loop, ast.While | ast.For) for n in ast.walk(loop)
            }
            found += [
                f"{short(path)}:{node.lineno}"
                for node in ast.walk(function)
                if isinstance(node, ast.Call)
                and ast.unparse(node.func) in ("time.sleep", "asyncio.sleep", "sleep")
                and id(node) not in looped
            ]
    assert not found
