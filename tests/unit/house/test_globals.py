"""What a session has is a client's, or its executor's: no module holds any of it, or writes into another module."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from .tree import PACKAGES, ROOT, functions, parsed, python_files, short

#: What a process has one of by nature, and why. Nothing of it tells of a session, an array or an executor.
OF_THE_PROCESS = {
    "kernelproxy/calls/array_core.py": {
        "array_class": "the class of new arrays, which the room on top has",
        "is_subclassed": "whether a program has made a class below it",
    },
    "kernelproxy/calls/interrupts.py": {"_previous": "the interpreter's one hook for what is raised as an object ends"},
    "kernelproxy/client.py": {
        "_all": "the clients there are: exit, fork and interrupts are told to all",
    },
    "kernelproxy/session/leaving.py": {"_ending": "a process ends once"},
    "kernelproxy/public_names.py": {"_told_by": "who makes what stands for a name: code, once"},
    "kernelproxy/source_lines.py": {"_name_of_file": "what people call a file"},
    "kernelproxy/namespace/pinned_memory.py": {"_allocator": "host memory is this process's"},
    "gpu_backend/executor/tasks.py": {"_current": "each thread has its own"},
    "gpu_backend/opstream/proof/indexing.py": {
        "WINDOWS": "proved, whosever it is",
        "ROWS": "proved, whosever it is",
        "RUNS": "proved, whosever it is",
    },
    "gpu_backend/opstream/proof/setitem.py": {"_proved": "proved, whosever it is"},
    "gpu_backend/opstream/proof/registry.py": {
        "_rules": "rules: code, once",
        "_any_dtype": "of those",
        "_memory": "proved, whosever it is",
    },
}
#: Rooms that are not looked into: the CPU device has module by module what CuPy has, which is a process's one device
#: there too; what CuPy's testing chooses is chosen for a test, in a process of tests.
NOT_LOOKED_INTO = ("gpu_backend/devices/cpu/", "kernelproxy/testing/")
#: Where an import waits inside a function, and why: none breaks a circle, or `lint-imports` would tell of one.
WAITING_IMPORTS = {
    "catalog/__init__.py": "each part is loaded by the first question that needs it",
    "catalog/chart.py": "Matplotlib is there for plots alone",
    "catalog/listing.py": "each part is loaded by the first question that needs it",
    "catalog/loader.py": "what reads TOML is needed after an entry has changed",
    "catalog/nearest.py": "is needed after a mistake",
    "catalog/render/displayed.py": "pandas is there where somebody has brought it",
    "catalog/render/figure.py": "Matplotlib is there for plots alone",
    "catalog/validation.py": "pydantic is needed after an entry has changed",
    "catalog/values.py": "pydantic asks for it",
    "kernelproxy/__init__.py": "what only a program of CuPy's needs is loaded for one",
    "kernelproxy/testing/pytest_part.py": "pytest is there where tests are",
    "kernelproxy/testing/requirements.py": "packaging is there where tests are",
    "workbench/__init__.py": "an extension is loaded where IPython loads it",
    "workbench/catalog_cli.py": "the catalogue is loaded for its own command",
    "workbench/catalog_magics.py": "the catalogue is loaded by the first question",
    "workbench/cli.py": "the catalogue is loaded for its own command",
    "workbench/commands/pool_top.py": "a pool's side may not be installed",
    "workbench/commands/pool_usage.py": "a pool's side may not be installed",
    "workbench/diagnosis.py": "a pool's side may not be installed",
    "workbench/remote_python/sitecustomize.py": "it is run in programs that have nothing of ours yet",
    "gpu_backend/arbiter/simulate.py": "Matplotlib is there for plots alone",
    "gpu_backend/devices/__init__.py": "one of the two devices is loaded",
    "gpu_backend/executor/start.py": "nothing is loaded before the walls stand",
    "gpu_backend/opstream/surface/describe.py": "CUDA's path finder comes with CuPy",
    "gpu_backend/wire/dtypes.py": "ml_dtypes is there where a program has brought it",
    "gpu_backend/wire/near_names.py": "is needed after a mistake",
}
CHANGES = {
    *("append", "appendleft", "add", "update", "clear", "pop", "popleft", "popitem", "setdefault", "extend", "insert"),
    *("remove", "discard", "set", "sort", "reverse"),
}
FILES = [path for path in python_files(*PACKAGES) if not short(path).startswith(NOT_LOOKED_INTO)]


def names_of_module(path: Path) -> set[str]:
    """Return what the module binds by itself, outside of classes and functions; context variables are no globals."""
    bound: set[str] = set()
    for node in parsed(path).body:
        value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
        if isinstance(value, ast.Call) and root_of(value.func) == "ContextVar":
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target] if is_annotated(node) else []
        bound |= {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}
    return bound


def is_annotated(node: ast.stmt) -> bool:
    return isinstance(node, ast.AnnAssign)


def own_names(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """Return the parameters and variables of a function."""
    arguments = function.args
    given = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    stored = {one.id for one in ast.walk(function) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    return stored.union(one.arg for one in given if one is not None)


def changed_in(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    """Yield the names that a function rebinds as global, or whose object it changes without having made it."""
    declared = {name for node in ast.walk(function) if isinstance(node, ast.Global) for name in node.names}
    yield from declared
    own = own_names(function) - declared
    for node in ast.walk(function):
        name = changed_by(node)
        if name is not None and name not in own:
            yield name


def changed_by(node: ast.AST) -> str | None:
    """Return the name whose object ``node`` changes: by an item, an attribute or a method that is known to."""
    if isinstance(node, ast.Subscript | ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
        return root_of(node.value)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CHANGES:
        return root_of(node.func.value)
    return None


def root_of(node: ast.expr) -> str | None:
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def modules_imported(path: Path) -> set[str]:
    """Return the names under which ``path`` has other modules of ours."""
    found = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            folder = ROOT.joinpath(*node.module.split("."))
            inside = [one for one in node.names if (folder / f"{one.name}.py").exists() or (folder / one.name).is_dir()]
            found |= {one.asname or one.name for one in inside}
    return found


def test_no_module_holds_what_a_session_has() -> None:
    found = {
        (short(path), name)
        for path in FILES
        for function in functions(path)
        for name in changed_in(function)
        if name in names_of_module(path)
    }
    assert found == {(path, name) for path, names in OF_THE_PROCESS.items() for name in names}


def test_no_module_writes_into_another() -> None:
    found = []
    for path in FILES:
        modules = modules_imported(path)
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and root_of(node.value) in modules:
                found.append(f"{short(path)}:{node.lineno}")
    assert not found


def test_what_is_imported_is_imported_at_the_top() -> None:
    """An import inside of a function hides a circle, or what a module needs."""
    found = {short(path) for path in python_files(*PACKAGES) if imports_inside(parsed(path))}
    assert found == set(WAITING_IMPORTS)


def imports_inside(tree: ast.Module) -> list[ast.Import | ast.ImportFrom]:
    """Return the imports that wait inside of functions."""
    within = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)]
    return [node for one in within for node in ast.walk(one) if isinstance(node, ast.Import | ast.ImportFrom)]


@pytest.mark.parametrize(
    ("source", "waits"),
    [
        ("import a", False),
        ("if TYPE_CHECKING:\n    import a", False),
        ("def f():\n    import a", True),
        ("class C:\n    async def f(self):\n        if x:\n            from a import b", True),
    ],
)
def test_imports_that_wait_are_seen(source: str, waits: bool) -> None:
    assert bool(imports_inside(ast.parse(source))) == waits


@pytest.mark.parametrize(
    ("source", "changed"),
    [
        ("def f():\n    global a\n    a = 1", {"a"}),
        ("def f():\n    a[1] = 2", {"a"}),
        ("def f():\n    a.b = 2", {"a"}),
        ("def f():\n    a.b.append(2)", {"a"}),
        ("def f(a):\n    a.b = 2", set()),
        ("def f():\n    a = []\n    a.append(2)", set()),
    ],
)
def test_changes_are_seen(source: str, changed: set[str]) -> None:
    (function,) = ast.parse(source).body
    assert isinstance(function, ast.FunctionDef)
    assert set(changed_in(function)) == changed
