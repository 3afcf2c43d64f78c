"""Where the repository is and what is in it: shared by the checks of the house rules."""

from __future__ import annotations

import ast
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
