"""The source of a Python function and what the names in it stand for: all that compiling it needs.

Compiling reads the source as a syntax tree. Modules stay names (:class:`~.values.ModuleName`); apart from calls whose
function and arguments are constants, nothing of the function is run.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import textwrap
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gpu_backend.devices.cpu.kernels.jit.values import ModuleName


@dataclass(frozen=True, eq=False)
class FunctionSource:
    """A function to compile.

    Attributes
    ----------
    name
        Its name.
    text
        The source of its ``def``, or of the lambda expression.
    names
        What the free names of the source stand for: constants, other kernels, ``ModuleName``.
    """

    name: str
    text: str
    names: Mapping[str, Any] = field(default_factory=dict)

    def definition(self) -> ast.FunctionDef:
        """Return the syntax tree of the function.

        Raises
        ------
        SyntaxError
            If the text is no Python.
        ValueError
            If it holds no function, or several lambdas.
        """
        tree = ast.parse(textwrap.dedent(self.text))
        if len(tree.body) == 1 and isinstance(tree.body[0], ast.FunctionDef):
            return tree.body[0]
        lambdas = [node for node in ast.walk(tree) if isinstance(node, ast.Lambda)]
        if len(lambdas) != 1:
            raise ValueError(f"the source of {self.name!r} holds {len(lambdas)} lambdas instead of one function")
        body = ast.Return(lambdas[0].body, lineno=lambdas[0].lineno, col_offset=0)
        return ast.FunctionDef("_lambda_kernel", lambdas[0].args, [body], [], lineno=1, col_offset=0)


def function_source(function: Callable[..., object]) -> FunctionSource:
    """Return the source of a live function.

    Raises
    ------
    ValueError
        If it is not callable, has no source to be found, or is a lambda beside another on its line.
    """
    if not callable(function):
        raise ValueError("`func` must be a callable object.")
    name = getattr(function, "__name__", type(function).__name__)
    try:
        text = _lambda_text(function) if name == "<lambda>" else "".join(inspect.getsourcelines(function)[0])
    except (OSError, TypeError) as error:
        raise ValueError(
            f"JIT needs access to Python source code for {function} but could not be located.\n"
            "(hint: it is likely you passed a built-in function or method)"
        ) from error
    variables = inspect.getclosurevars(function)
    names = {**variables.builtins, **variables.globals, **variables.nonlocals}
    return FunctionSource(name, text, {key: _known(value) for key, value in names.items()})


def _known(value: object) -> Any:
    return ModuleName(value.__name__) if isinstance(value, types.ModuleType) else value


def _lambda_text(function: Callable[..., object]) -> str:
    # The lines that hold a lambda need not parse by themselves: it is looked for in the tree of its whole file.
    lines, start = inspect.getsourcelines(function)
    tree = ast.parse("".join(linecache.getlines(inspect.getsourcefile(function) or "")))
    near = [
        node for node in ast.walk(tree) if isinstance(node, ast.Lambda) and start <= node.lineno < start + len(lines)
    ]
    if len(near) != 1:
        raise ValueError(
            f"Multiple callables are found near the definition of {function}, and JIT could not identify the source "
            "code for it."
        )
    return ast.unparse(near[0])
