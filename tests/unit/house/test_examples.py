"""The examples as they lie in the repository: real notebooks, clean of outputs, that know nothing of us."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import nbformat
import pytest

from .tree import PACKAGES, ROOT

NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


def read(path: Path) -> Any:
    return nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]


def code(path: Path) -> str:
    return "\n".join(cell.source for cell in read(path).cells if cell.cell_type == "code")


def test_they_are_numbered_without_gaps() -> None:
    numbers = [re.match(r"(\d\d)_[a-z_]+$", path.stem) for path in NOTEBOOKS]
    assert [int(match[1]) for match in numbers if match] == list(range(1, len(NOTEBOOKS) + 1))
    assert len(NOTEBOOKS) >= 5


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
class TestEachNotebook:
    def test_is_valid_and_asks_for_the_remote_kernel(self, path: Path) -> None:
        notebook = read(path)
        nbformat.validate(notebook)
        assert notebook.metadata.kernelspec.name == "remote-gpu"

    def test_has_no_output(self, path: Path) -> None:
        cells = [cell for cell in read(path).cells if cell.cell_type == "code"]
        assert all(not cell.outputs and cell.execution_count is None for cell in cells)

    def test_knows_nothing_of_us(self, path: Path) -> None:
        imported = {
            name
            for node in ast.walk(ast.parse(code(path)))
            for name in (
                [alias.name.split(".")[0] for alias in node.names]
                if isinstance(node, ast.Import)
                else [(node.module or "").split(".")[0]]
                if isinstance(node, ast.ImportFrom)
                else []
            )
        }
        assert "cupy" in imported
        assert not imported & set(PACKAGES)
        assert not re.search(r"^\s*[%!]", code(path), re.MULTILINE), "a magic or a shell line"

    def test_ends_with_numbers_that_it_checks(self, path: Path) -> None:
        last = [cell for cell in read(path).cells if cell.cell_type == "code"][-1]
        assert sum(isinstance(node, ast.Assert) for node in ast.parse(last.source).body) >= 3
