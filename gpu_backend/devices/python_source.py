"""Kernels written in Python: their source as it came from a notebook, checked before any device compiles it.

Nothing of the source is ever run as Python. Compilers of kernels read it as a syntax tree, but they do compute what is
constant in it: attributes of constants, and calls of constants on constants. So what a constant may be, and which
attributes may be asked of one, is decided here. See docs/adr/0013-source-of-python-kernels.md.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

#: Modules that a kernel may name. Which of their attributes it may use is the device's to say.
MODULES = frozenset(
    {"cupy", "cupyx", "cupyx.jit", "cupyx.jit.cg", "cupyx.jit.cub", "cupyx.jit.thrust", "numpy", "math"}
)
#: Builtins that mean something in a kernel.
BUILTINS: dict[str, object] = {
    one.__name__: one for one in (abs, bool, complex, divmod, float, int, len, max, min, pow, range, round, sum, tuple)
}
#: What may be asked of a value in a kernel: parts of arrays, vectors, numbers and types, and the methods of groups.
_ATTRIBUTES = frozenset(
    """x y z w T begin end dtype imag itemsize kind name ndim num real shape size strides type value
    ExclusiveSum InclusiveSum Max Min Reduce Sum TempStorage assign block_index block_rank dim_blocks dim_threads
    group_dim group_index is_valid num_blocks num_threads sync thread_index thread_rank""".split()
)
_MOST_CHARS = 200_000


@dataclass(frozen=True)
class Named:
    """A public object that a kernel names, such as ``cupyx.jit.threadIdx``: the module, and the name in it."""

    module: str
    name: str


@dataclass(frozen=True)
class NamedModule:
    """A module that a kernel names."""

    path: str


@dataclass(frozen=True, eq=False)
class PythonSource:
    """A function of a notebook, as text.

    Attributes
    ----------
    name
        Its name, "<lambda>" for a lambda.
    text
        Its ``def``, with decorators; or an expression that holds one lambda.
    names
        What its free names stand for: numbers, tuples, dtypes, `Named`, `NamedModule`, and kernels of the device.
    """

    name: str
    text: str
    names: Mapping[str, object]

    def definition(self) -> ast.FunctionDef | ast.Lambda:
        """Return the syntax tree of the function alone: no decorators, defaults or annotations, which would run.

        Raises
        ------
        ValueError
            If there is not one function, or it asks for what no kernel may.
        """
        if len(self.text) > _MOST_CHARS:
            raise ValueError(f"A kernel of {len(self.text):,} characters is too long.")
        tree = ast.parse(textwrap.dedent(self.text))
        functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
        found: list[ast.FunctionDef | ast.Lambda] = list(functions)
        if self.name == "<lambda>":
            found = [node for node in ast.walk(tree) if isinstance(node, ast.Lambda)]
        if len(found) != 1 or len(tree.body) != 1:
            raise ValueError(f"The source of {self.name!r} holds {len(found)} functions instead of one.")
        (function,) = found
        _strip(function)
        _check(function, self.names)
        return function


def _strip(function: ast.FunctionDef | ast.Lambda) -> None:
    arguments = function.args
    if arguments.defaults or any(arguments.kw_defaults):
        raise NotImplementedError("Default values of a kernel's parameters are not supported.")
    if isinstance(function, ast.FunctionDef):
        function.decorator_list, function.returns = [], None
    for argument in _arguments(arguments):
        argument.annotation = None


def _arguments(arguments: ast.arguments) -> Iterator[ast.arg]:
    yield from (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    yield from filter(None, (arguments.vararg, arguments.kwarg))


def _check(function: ast.FunctionDef | ast.Lambda, names: Mapping[str, object]) -> None:
    """Refuse attributes that could lead from a constant to anything but a part of it."""
    modules = {name for name, value in names.items() if isinstance(value, NamedModule)}
    own = {argument.arg for argument in _arguments(function.args)}
    own |= {node.id for node in ast.walk(function) if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
    if own & modules:
        raise ValueError(f"A kernel may not give {', '.join(sorted(own & modules))} another meaning: it is a module.")
    for node in ast.walk(function):
        if isinstance(node, ast.Attribute) and node.attr not in _ATTRIBUTES and not _is_of_module(node, names):
            raise AttributeError(f"Unknown attribute: {node.attr}")
        if isinstance(node, (ast.Import, ast.ImportFrom, ast.ClassDef, ast.AsyncFunctionDef, ast.Await, ast.Yield)):
            raise ValueError(f"A kernel may not hold {type(node).__name__}.")


def _is_of_module(node: ast.Attribute, names: Mapping[str, object]) -> bool:
    """Tell whether ``node`` asks a module, or a module of it: "jit.cg.sync", but not "cp.add.at"."""
    parts: list[str] = []
    owner = node.value
    while isinstance(owner, ast.Attribute):
        parts.append(owner.attr)
        owner = owner.value
    if not isinstance(owner, ast.Name) or node.attr.startswith("_"):
        return False
    root = names.get(owner.id)
    return isinstance(root, NamedModule) and ".".join((root.path, *reversed(parts))) in MODULES
