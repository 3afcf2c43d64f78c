"""A notebook without Jupyter: runs the cells that come on its standard input, one JSON line each, and answers in kind.

Started by `tests.faults.notebook`. What a cell prints, and what is told of an interrupt, goes to standard error; the
value of its last expression, or its error, is the answer.
"""

from __future__ import annotations

import ast
import json
import linecache
import sys
from time import monotonic
from typing import Any

import kernelproxy
from kernelproxy.calls.interruption import tell_interrupted

names: dict[str, Any] = {}


def run(cell: str, number: int) -> dict[str, Any]:
    """Run ``cell`` and return what came of it."""
    filename = f"<cell {number}>"
    linecache.cache[filename] = (len(cell), None, cell.splitlines(keepends=True), filename)
    tree = ast.parse(cell, filename)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    begun = monotonic()
    outcome: dict[str, Any] = {"value": None, "error": ""}
    try:
        exec(compile(tree, filename, "exec"), names)
        if last is not None:
            assert isinstance(last, ast.Expr)
            outcome["value"] = repr(eval(compile(ast.Expression(last.value), filename, "eval"), names))
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            tell_interrupted(names)
        outcome |= {"error": type(error).__name__, "text": str(error), "notes": getattr(error, "__notes__", [])}
    return {**outcome, "seconds": monotonic() - begun}


def main() -> None:
    answers, sys.stdout = sys.stdout, sys.stderr
    kernelproxy.activate()
    run("import cupy as cp, numpy as np\nfrom kernelproxy import current_session", 0)
    number = 0
    while line := read_line():
        number += 1
        answers.write(json.dumps(run(json.loads(line), number)) + "\n")
        answers.flush()


def read_line() -> str:
    while True:
        try:
            return sys.stdin.readline()
        except KeyboardInterrupt:  # it struck when the cell was over
            continue


if __name__ == "__main__":
    main()
