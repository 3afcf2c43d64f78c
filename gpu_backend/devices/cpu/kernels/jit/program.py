"""A kernel written in Python together with the kernels that it calls, as one C++ text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from gpu_backend.devices.cpu.kernels.jit.function_source import FunctionSource
from gpu_backend.devices.cpu.kernels.jit.statements import FunctionCompiler
from gpu_backend.devices.cpu.kernels.jit.values import Mode, Type, Value, Void

_MOST_FUNCTIONS = 100


class Compiled(NamedTuple):
    """C++ text, and the name and the result type of its main function."""

    name: str
    code: str
    returns: Type


class Program:
    """Collects the functions of one kernel."""

    def __init__(self) -> None:
        self._done: dict[tuple[FunctionSource, tuple[Type, ...]], tuple[str, Type] | None] = {}
        self._texts: list[str] = []

    def compile(
        self, source: FunctionSource, attributes: str, mode: Mode, types: Sequence[Type], returns: Type | None
    ) -> tuple[str, Type]:
        """Add ``source`` for arguments of ``types``; return its C++ name and its result type.

        Raises
        ------
        ValueError
            If it calls itself, or the kernel has too many functions.
        """
        key = (source, tuple(types))
        if key in self._done:
            found = self._done[key]
            if found is None:
                raise ValueError("Recursive function is not supported.")
            return found
        if len(self._done) >= _MOST_FUNCTIONS:
            raise ValueError("Number of functions exceeds upper limit.")
        self._done[key] = None
        compiler = FunctionCompiler(source, mode, types, returns, self._call)
        # A prefix, because C has functions of its own with names that a kernel may well have.
        name = f"py_{compiler.definition.name}" + (f"_{len(self._done) - 1}" if len(self._done) > 1 else "")
        body = compiler.body()
        result = compiler.returns or Void()
        parameters = ", ".join(f"{kind.cpp} {own}" for kind, own in zip(types, compiler.parameters, strict=True))
        self._texts.append(f"{attributes} {result.cpp} {name}({parameters}) {{\n{body}\n}}\n")
        self._done[key] = (name, result)
        return name, result

    def _call(self, called: Any, arguments: list[Value], mode: Mode) -> Value | None:
        if not called.is_device_kernel:
            raise TypeError(f"Calling __global__ function {called.__name__} from __global__ function is not allowed.")
        name, result = self.compile(called.source, "inline", mode, [argument.type for argument in arguments], None)
        return Value(f"{name}({', '.join(argument.code for argument in arguments)})", result)

    @property
    def code(self) -> str:
        """The text of all functions."""
        return "\n".join(self._texts)


def compile_function(
    source: FunctionSource, attributes: str, mode: Mode, types: Sequence[Type], returns: Type | None = None
) -> Compiled:
    """Return the C++ text of ``source`` for arguments of ``types``.

    Raises
    ------
    TypeError, ValueError, NameError, AttributeError, IndexError, NotImplementedError
        If the function cannot be compiled; the message ends with the statement.
    """
    program = Program()
    name, result = program.compile(source, attributes, mode, types, returns)
    return Compiled(name, program.code, result)
