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


def test_a_loop_that_an_interrupt_may_end_is_apart_from_what_follows_it() -> None:
    """CPython 3.13 lets an interrupt that strikes as a loop goes round pass by the ``finally`` around that loop.

    Its exception table leaves out the jump back (https://github.com/python/cpython/issues/130279). Of a loop in a
    function of its own the caller is told. This holds what people interrupt: notebooks, and commands.
    """
    found = [
        f"{short(path)}:{loop.lineno}"
        for path in python_files("kernelproxy", "workbench", "catalog", "gpu_backend/transport")
        for node in ast.walk(parsed(path))
        if isinstance(node, (ast.Try, ast.With)) and ends_in_any_case(node)
        for loop in loops_within(node.body)
    ]
    assert not found


def ends_in_any_case(node: ast.Try | ast.With) -> bool:
    """Tell whether something has to follow an interrupt too."""
    if isinstance(node, ast.With):
        return not all(ast.unparse(item).startswith("suppress(") for item in node.items)
    return bool(node.finalbody) or any(
        handler.type is None or "BaseException" in (named := ast.unparse(handler.type)) or "Interrupt" in named
        for handler in node.handlers
    )


def loops_within(body: list[ast.stmt]) -> list[ast.For | ast.While]:
    """Return the loops of ``body`` that are in the same function."""
    found: list[ast.For | ast.While] = []
    for statement in body:
        if isinstance(statement, (ast.For, ast.While)):
            found.append(statement)
        elif not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            parts = [getattr(statement, part, []) for part in ("body", "orelse", "finalbody", "handlers")]
            inner = [one for part in parts for one in part]
            found += loops_within([one for one in inner if isinstance(one, ast.stmt)])
            found += [loop for one in inner if isinstance(one, ast.ExceptHandler) for loop in loops_within(one.body)]
    return found


def test_a_loop_that_is_not_apart_is_found() -> None:
    for text, count in (
        ("try:\n  while x: y()\nfinally: z()", 1),
        ("with x:\n  if y:\n    for z in x: y()", 1),
        ("try:\n  while x: y()\nexcept OSError: z()", 0),
        ("with x:\n  def y():\n    for z in x: y()", 0),
    ):
        node = ast.parse(text).body[0]
        assert isinstance(node, (ast.Try, ast.With))
        assert len(loops_within(node.body)) * ends_in_any_case(node) == count


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
