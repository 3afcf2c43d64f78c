"""Kernels written in Python, from a notebook: what their free names are to the compilers here."""

from __future__ import annotations

import ast
from typing import Any

from gpu_backend.devices.cpu.kernels.jit.expressions import module_attribute
from gpu_backend.devices.cpu.kernels.jit.function_source import FunctionSource
from gpu_backend.devices.cpu.kernels.jit.rawkernel import JitRawKernel, rawkernel
from gpu_backend.devices.cpu.kernels.jit.values import ModuleName
from gpu_backend.devices.cpu.kernels.vectorize import vectorize
from gpu_backend.devices.cpu.naming import describe_as, public_class
from gpu_backend.devices.python_source import BUILTINS, Named, NamedModule, PythonSource

public_class("cupy.vectorize", module="cupy")(vectorize)
describe_as("cupyx.jit._interface._JitRawKernel", JitRawKernel)


def make_kernel(kind: str, source: PythonSource, options: dict[str, Any]) -> Any:
    """Return the object of class ``kind`` for ``source``."""
    names = BUILTINS | {name: _known(value) for name, value in source.names.items()}
    function = FunctionSource(source.name, ast.unparse(source.definition()), names)
    if kind == "cupyx.jit.rawkernel":
        return rawkernel(**options)(function)  # type: ignore[arg-type]
    if kind == "cupy.vectorize":
        return vectorize(function, **options)
    raise AttributeError(f"{kind!r} makes no kernel of a Python function")


def _known(value: object) -> Any:
    if isinstance(value, NamedModule):
        return ModuleName(value.path)
    return module_attribute(ModuleName(value.module), value.name) if isinstance(value, Named) else value
