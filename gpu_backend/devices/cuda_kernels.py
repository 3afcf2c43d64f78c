"""Kernels written in Python, on CuPy: a function that CuPy's compiler can read, and that nobody ever calls."""

from __future__ import annotations

import ast
import builtins
import importlib
import itertools
import linecache
import types
import warnings
from typing import Any

import cupy
import numpy as np
from cupyx import jit

from gpu_backend.devices.python_source import BUILTINS, MODULES, Named, NamedModule, PythonSource

_numbers = itertools.count(1)
#: What a module may give to a kernel.
_USABLE = (cupy.ufunc, np.ufunc, float, int, jit._internal_types.BuiltinFunc, jit._internal_types.Data)


class PublicModule:
    """Stands for a module: has what a kernel may use of it, and nothing else."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __getattr__(self, name: str) -> Any:
        return usable(self._path, name)


def usable(module: str, name: str) -> Any:
    """Return attribute ``name`` of ``module`` for a kernel.

    Raises
    ------
    AttributeError
        If it is there, but no kernel can use it, or if it is not.
    """
    path = f"{module}.{name}"
    if path in MODULES:
        return PublicModule(path)
    if name.startswith("_") or module not in MODULES:
        raise AttributeError(f"kernels written in Python cannot use {path!r}")
    found = getattr(importlib.import_module(module), name)
    is_type = isinstance(found, type) and issubclass(found, (np.generic, np.dtype))
    of_jit = module.startswith("cupyx.jit") and not isinstance(found, types.ModuleType) and name != "rawkernel"
    if is_type or of_jit or isinstance(found, _USABLE) or module == "math":
        return found
    raise AttributeError(f"kernels written in Python cannot use {path!r}")


def function_of(source: PythonSource) -> types.FunctionType:
    """Return a function whose source CuPy finds and whose free names are those of ``source``."""
    definition = source.definition()
    filename = f"<kernel {next(_numbers)} of the notebook>"
    if isinstance(definition, ast.Lambda):
        text = f"kernel = {ast.unparse(definition)}\n"
    else:
        text = ast.unparse(definition) + "\n"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    scope: dict[str, Any] = {"__name__": "notebook", "__builtins__": {**BUILTINS, "__build_class__": None}}
    # Runs one `def` without decorators, defaults and annotations, or one lambda: it makes a function, and calls none.
    builtins.exec(compile(ast.parse(text), filename, "exec"), scope)
    made = scope["kernel" if isinstance(definition, ast.Lambda) else definition.name]
    scope.update({name: _live(value) for name, value in source.names.items()})
    return made  # type: ignore[no-any-return]


def _live(value: Any) -> Any:
    if isinstance(value, NamedModule):
        return PublicModule(value.path)
    return usable(value.module, value.name) if isinstance(value, Named) else value


def make_kernel(kind: str, source: PythonSource, options: dict[str, Any]) -> Any:
    """Return CuPy's object of class ``kind`` for ``source``."""
    function = function_of(source)
    if kind == "cupyx.jit.rawkernel":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # the notebook has warned where the kernel was defined
            return jit.rawkernel(**options)(function)
    if kind == "cupy.vectorize":
        return cupy.vectorize(function, **options)
    raise AttributeError(f"{kind!r} makes no kernel of a Python function")
