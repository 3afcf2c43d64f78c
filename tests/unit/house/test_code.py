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
    """To write a pickle of the user's own, as arrays do when they are asked to, harms nobody."""
    found = [
        f"{short(path)}:{node.lineno}"
        for path in python_files(*PACKAGES)
        for node in ast.walk(parsed(path))
        if isinstance(node, (ast.Import, ast.ImportFrom, ast.Attribute)) and may_unpickle(node)
    ]
    assert not found


def may_unpickle(node: ast.Import | ast.ImportFrom | ast.Attribute) -> bool:
    if isinstance(node, ast.Import):
        return any(
            name.name.split(".")[0] in UNSAFE and (name.name, name.asname) != ("pickle", None) for name in node.names
        )
    if isinstance(node, ast.ImportFrom):
        return (node.module or "").split(".")[0] in UNSAFE
    return isinstance(node.value, ast.Name) and node.value.id == "pickle" and node.attr not in ("dump", "dumps")


def test_reading_a_pickle_is_found() -> None:
    for line in (
        "import dill",
        "import pickle as p",
        "from pickle import loads",
        "pickle.loads(x)",
        "pickle.Unpickler",
    ):
        assert any(
            may_unpickle(node)
            for node in ast.walk(ast.parse(line))
            if isinstance(node, (ast.Import, ast.ImportFrom, ast.Attribute))
        )


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
