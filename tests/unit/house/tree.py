"""Where the repository is and what is in it: shared by the checks of the house rules."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[3]
PACKAGES = ("workbench", "kernelproxy", "catalog", "gpu_backend")
#: Folders that hold our code or our words. Everything else at the top is made by tools.
FOLDERS = (*PACKAGES, "tests", "benchmarks", "docs", "examples", "newsfragments", ".ci")


def python_files(*folders: str) -> list[Path]:
    """Return the Python files below ``folders``, or below everything that is ours."""
    return [path for folder in folders or FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]


def markdown_files() -> list[Path]:
    """Return every page of documentation, those at the top included."""
    return [
        *sorted(ROOT.glob("*.md")),
        *sorted((ROOT / "docs").rglob("*.md")),
        *sorted((ROOT / "newsfragments").glob("*")),
    ]


@cache
def parsed(path: Path) -> ast.Module:
    """Return the syntax tree of ``path``."""
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def short(path: Path) -> str:
    """Return ``path`` as people write it."""
    return path.relative_to(ROOT).as_posix()


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield every function and method of ``path``, nested ones too."""
    return (node for node in ast.walk(parsed(path)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.arg]:
    """Yield every parameter but ``self`` and ``cls``, those with stars too."""
    taken = function.args
    for one in (*taken.posonlyargs, *taken.args, *taken.kwonlyargs, taken.vararg, taken.kwarg):
        if one is not None and one.arg not in ("self", "cls"):
            yield one


def says_any(annotation: ast.expr | None) -> bool:
    """Tell whether ``Any`` stands anywhere in an annotation; one that is not there leaves everything open."""
    return annotation is None or re.search(r"\bAny\b", ast.unparse(annotation)) is not None


def lines_without_docstring(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return how many lines a function has, its docstring aside."""
    lines = (function.end_lineno or function.lineno) - function.lineno + 1
    first = function.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        lines -= (first.end_lineno or first.lineno) - first.lineno + 1
    return lines
