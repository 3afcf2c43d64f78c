"""Calls that a kernel makes while it is compiled: of the notebook's own functions, on constants.

CuPy evaluates such a call when it meets it, and the kernel goes on with the result: ``scaled_by(3)(x)`` calls a kernel
that ``scaled_by`` has made for this. The functions stay in the notebook, so they are called here, before the kernel's
source is sent, and the result stands in it under a name of its own.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Callable, Mapping
from typing import Any

#: What a constant may be made of.
_PARTS = (
    *(ast.Constant, ast.Name, ast.Tuple, ast.UnaryOp, ast.BinOp, ast.BoolOp, ast.Compare, ast.IfExp),
    *(ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop),
)


def is_own_function(value: object) -> bool:
    """Tell whether ``value`` is a function of the notebook, which means nothing in a kernel but its results do."""
    return isinstance(value, types.FunctionType)


def evaluated(
    tree: ast.Module, names: Mapping[str, object], is_plain: Callable[[object], bool]
) -> tuple[ast.Module, dict[str, Any]]:
    """Return ``tree`` with such calls replaced, and the names of their results.

    Parameters
    ----------
    tree
        The source of a kernel.
    names
        What its free names stand for.
    is_plain
        Tells which of these are constants.
    """
    evaluator = _Evaluator(names, is_plain)
    return ast.fix_missing_locations(evaluator.visit(tree)), evaluator.results


class _Evaluator(ast.NodeTransformer):
    def __init__(self, names: Mapping[str, object], is_plain: Callable[[object], bool]) -> None:
        self._functions = {name: value for name, value in names.items() if isinstance(value, types.FunctionType)}
        self._constants = {name: value for name, value in names.items() if is_plain(value)}
        self.results: dict[str, Any] = {}

    def visit_If(self, node: ast.If) -> Any:
        """Keep only the branch that is compiled: a call in the other one might never end."""
        if not self._is_constant(node.test):
            return self.generic_visit(node)
        chosen = node.body if self._value(node.test) else node.orelse
        return [self.visit(statement) for statement in chosen] or ast.Pass()

    def visit_Call(self, node: ast.Call) -> Any:
        """Replace the call, if all it needs is known."""
        self.generic_visit(node)
        given = [*node.args, *(keyword.value for keyword in node.keywords)]
        function = self._functions.get(node.func.id) if isinstance(node.func, ast.Name) else None
        if function is None or not all(map(self._is_constant, given)) or any(k.arg is None for k in node.keywords):
            return node
        keywords = {keyword.arg: self._value(keyword.value) for keyword in node.keywords if keyword.arg}
        result = f"_result_{len(self.results)}_of_{function.__name__}"
        self.results[result] = function(*map(self._value, node.args), **keywords)
        return ast.Name(result, ast.Load())

    def _is_constant(self, node: ast.expr) -> bool:
        parts = list(ast.walk(node))
        named = all(part.id in self._constants for part in parts if isinstance(part, ast.Name))
        return named and all(isinstance(part, _PARTS) for part in parts)

    def _value(self, node: ast.expr) -> Any:
        expression = ast.fix_missing_locations(ast.Expression(node))
        return eval(compile(expression, "<kernel>", "eval"), {"__builtins__": {}}, self._constants)
