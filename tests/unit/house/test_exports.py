"""What a package exports exists, and stands in the documentation."""

from __future__ import annotations

import ast
import importlib
import re
from functools import cache
from pathlib import Path

import pytest

from .tree import PACKAGES, ROOT, markdown_files, parsed, python_files, short


def exported(path: Path) -> list[str] | None:
    for node in parsed(path).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            try:
                return list(ast.literal_eval(node.value))
            except ValueError:  # computed, as a namespace served from the surface description is
                return None
    return None


@cache
def documentation() -> str:
    return "\n".join(page.read_text(encoding="utf-8") for page in markdown_files())


PUBLIC = [ROOT / package / "__init__.py" for package in PACKAGES]
WITH_ALL = [path for path in python_files(*PACKAGES) if exported(path)]


@pytest.mark.parametrize("path", WITH_ALL, ids=short)
def test_exported_names_exist_once(path: Path) -> None:
    names = exported(path) or []
    module = importlib.import_module(short(path).removesuffix(".py").removesuffix("/__init__").replace("/", "."))
    assert len(names) == len(set(names))
    assert not [name for name in names if not hasattr(module, name)]


@pytest.mark.parametrize("path", [path for path in PUBLIC if exported(path)], ids=short)
def test_public_names_are_documented(path: Path) -> None:
    names = exported(path) or []
    assert not [name for name in names if not re.search(rf"\b{re.escape(name)}\b", documentation())]
