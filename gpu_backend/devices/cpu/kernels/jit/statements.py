"""Python statements as C++, and whole functions."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpu_backend.devices.cpu.kernels.jit import rules
from gpu_backend.devices.cpu.kernels.jit.expressions import ExpressionCompiler
from gpu_backend.devices.cpu.kernels.jit.function_source import FunctionSource
from gpu_backend.devices.cpu.kernels.jit.values import (
    BOOL,
    Constant,
    Expression,
    Mode,
    Range,
    Scalar,
    TupleOf,
    Type,
    Value,
    Void,
)

#: What a variable may be assigned although it is a constant; all else is a name for a Python object.
_NUMBERS = (bool, int, float, complex, np.generic)

_REFUSED: dict[type[ast.stmt], str] = {
    ast.ClassDef: "class is not supported currently.",
    ast.FunctionDef: "Nested functions are not supported currently.",
    ast.AsyncFunctionDef: "Nested functions are not supported currently.",
    ast.Delete: "`del` is not supported currently.",
    ast.AsyncFor: "`async for` is not allowed.",
    ast.With: "Switching contexts are not allowed.",
    ast.AsyncWith: "Switching contexts are not allowed.",
    ast.Raise: "throw/catch are not allowed.",
    ast.Try: "throw/catch are not allowed.",
    ast.Import: "Cannot import modules from the target functions.",
    ast.ImportFrom: "Cannot import modules from the target functions.",
    ast.Global: "Cannot use global/nonlocal in the target functions.",
    ast.Nonlocal: "Cannot use global/nonlocal in the target functions.",
}


class FunctionCompiler(ExpressionCompiler):
    """Compiles one function for arguments of known types.

    Parameters
    ----------
    source
        The function.
    mode
        How constants and mixed operands are typed.
    types
        Of its arguments.
    returns
        Type of its result, or None to find out.
    call_kernel
        Compiles the call of another kernel: given the object called and the arguments, returns the call, or None if the
        object is no kernel.
    """

    def __init__(
        self,
        source: FunctionSource,
        mode: Mode,
        types: Sequence[Type],
        returns: Type | None,
        call_kernel: Callable[[Any, list[Value], Mode], Value | None],
    ) -> None:
        self.definition = source.definition()
        self.parameters = _parameters(self.definition, len(types))
        variables: dict[str, Expression] = {name: Constant(value) for name, value in source.names.items()}
        variables.update({name: Value(name, kind) for name, kind in zip(self.parameters, types, strict=True)})
        super().__init__(mode, variables)
        self.types = types
        self.returns = returns
        self._call_kernel = call_kernel

    def body(self) -> str:
        """Return the C++ text between the function's braces. ``returns`` is known afterwards."""
        lines = self._block(self.definition.body, True)
        self.returns = self.returns or Void()
        return "\n".join(f"  {line}" for line in (*self.declarations, *lines))

    def call_object(self, called: object, operands: list[Expression], keywords: dict[str, Expression]) -> Expression:
        """Return the call of another kernel, or of any Python object."""
        if not keywords and hasattr(called, "is_device_kernel"):
            made = self._call_kernel(called, [self.number(operand) for operand in operands], self.mode)
            if made is not None:
                return made
        return super().call_object(called, operands, keywords)

    def _block(self, statements: Sequence[ast.stmt], top: bool) -> list[str]:
        return [line for statement in statements for line in self._statement(statement, top)]

    def _statement(self, node: ast.stmt, top: bool) -> list[str]:
        if type(node) in _REFUSED:
            kind = NotImplementedError if "supported" in _REFUSED[type(node)] else ValueError
            raise _at(node, kind(_REFUSED[type(node)]))
        method = getattr(self, f"_do_{type(node).__name__.lower()}", None)
        if method is None:
            raise _at(node, NotImplementedError(f"Not supported: {type(node).__name__}"))
        try:
            lines: list[str] = method(node, top)
        except (TypeError, ValueError, NameError, AttributeError, IndexError, KeyError, NotImplementedError,
                AssertionError, ArithmeticError) as error:  # fmt: skip
            raise _at(node, error) from None
        return lines

    def _do_pass(self, node: ast.Pass, top: bool) -> list[str]:
        return [";"]

    def _do_break(self, node: ast.Break, top: bool) -> list[str]:
        return ["break;"]

    def _do_continue(self, node: ast.Continue, top: bool) -> list[str]:
        return ["continue;"]

    def _do_expr(self, node: ast.Expr, top: bool) -> list[str]:
        value = self.expression(node.value)
        return [f"{value.code};"] if isinstance(value, Value) else [";"]

    def _do_assert(self, node: ast.Assert, top: bool) -> list[str]:
        value = self.expression(node.test)
        if isinstance(value, Constant):
            assert value.value
            return [";"]
        return [f"assert({self.cast(value, BOOL).code});"]

    def _do_return(self, node: ast.Return, top: bool) -> list[str]:
        value = self.expression(node.value)
        if isinstance(value, Constant) and value.value is None:
            return ["return;"]
        result = self.number(value)
        if self.returns is None:
            self.returns = result.type
        elif self.returns != result.type:
            raise ValueError(f"Failed to infer the return type: {self.returns} or {result.type}")
        return [f"return {result.code};"]

    def _do_assign(self, node: ast.Assign, top: bool) -> list[str]:
        if len(node.targets) != 1:
            raise NotImplementedError("Assignment to several targets is not supported.")
        (target,) = node.targets
        value = self.expression(node.value)
        if isinstance(value, Constant) and isinstance(target, ast.Name) and not isinstance(value.value, _NUMBERS):
            if not top:
                raise TypeError("Cannot assign constant value not at top-level.")
            if isinstance(self.variables.get(target.id), Value):
                raise TypeError(f"Type mismatch of variable: `{target.id}`")
            self.variables[target.id] = value
            return []
        return self._assign(target, self.number(value), top)

    def _do_annassign(self, node: ast.AnnAssign, top: bool) -> list[str]:
        raise NotImplementedError("Annotated assignment is not supported.")

    def _assign(self, target: ast.expr, value: Value, top: bool) -> list[str]:
        if isinstance(target, ast.Name):
            known = self.variables.get(target.id)
            if known is None:
                self.variables[target.id] = Value(target.id, value.type)
                if top:
                    return [f"{_declared(value.type, target.id)} = {value.code};"]
                self.declare(f"{_declared(value.type, target.id)};")
                return [f"{target.id} = {value.code};"]
            return [self._store(known, value)]
        if isinstance(target, ast.Subscript):
            return [self._store(self.expression(target), value)]
        if isinstance(target, ast.Tuple):
            return self._unpack(target, value)
        raise NotImplementedError(f"Cannot assign to {ast.unparse(target)}")

    def _store(self, target: Expression, value: Value) -> str:
        if not isinstance(target, Value):
            raise TypeError("lvalue of assignment must not be constant value")
        if isinstance(target.type, Scalar) and isinstance(value.type, Scalar):
            value = self.cast(value, target.type, "same_kind")
        elif target.type != value.type:
            raise TypeError(f"Data type mismatch of variable: `{target.code}`: {target.type} != {value.type}")
        return f"{target.code} = {value.code};"

    def _unpack(self, target: ast.Tuple, value: Value) -> list[str]:
        if not isinstance(value.type, TupleOf):
            raise ValueError(f"{value.type} cannot be unpack")
        wanted, given = len(target.elts), len(value.type.items)
        if given != wanted:
            raise ValueError(f"{'too many' if given > wanted else 'not enough'} values to unpack (expected {wanted})")
        name = self.fresh_name("_tuple")
        lines = [f"const {value.type.cpp} {name} = {value.code};"]
        for number, (item, kind) in enumerate(zip(target.elts, value.type.items, strict=True)):
            lines += self._assign(item, Value(f"gpu::get<{number}>({name})", kind), False)
        return ["{", *(f"  {line}" for line in lines), "}"]

    def _do_augassign(self, node: ast.AugAssign, top: bool) -> list[str]:
        value = self.number(self.expression(node.value))
        target = self.expression(node.target)
        if not isinstance(target, Value) or not isinstance(target.type, Scalar):
            raise TypeError(f"Cannot augassign to {ast.unparse(node.target)}")
        name = self.fresh_name("_target")
        result = self.ufunc(rules.UFUNC_OF[type(node.op)], [Value(name, target.type), value])
        stored = self.cast(result, target.type, "same_kind")
        return [f"{{ {target.type.cpp} &{name} = {target.code}; {name} = {stored.code}; }}"]

    def _do_if(self, node: ast.If, top: bool) -> list[str]:
        condition = self.expression(node.test)
        if isinstance(condition, Constant):
            return self._block(node.body if condition.value else node.orelse, top)
        lines = [f"if ({self.cast(condition, BOOL).code}) {{", *_indented(self._block(node.body, False)), "}"]
        if node.orelse:
            lines += ["else {", *_indented(self._block(node.orelse, False)), "}"]
        return lines

    def _do_while(self, node: ast.While, top: bool) -> list[str]:
        if node.orelse:
            raise NotImplementedError("while-else is not supported.")
        condition = self.cast(self.expression(node.test), BOOL)
        return [f"while ({condition.code}) {{", *_indented(self._block(node.body, False)), "}"]

    def _do_for(self, node: ast.For, top: bool) -> list[str]:
        if node.orelse:
            raise NotImplementedError("for-else is not supported.")
        if not isinstance(node.target, ast.Name):
            raise NotImplementedError("the target of a for-loop must be one name.")
        run = self.expression(node.iter)
        if not isinstance(run, Range):
            raise NotImplementedError("for-loop is supported only for range iterator.")
        name = node.target.id
        known = self.variables.get(name)
        if known is None:
            self.variables[name] = Value(name, run.type)
            self.declare(f"{run.type.cpp} {name};")
        elif not isinstance(known, Value):
            raise TypeError("loop counter must not be constant value")
        elif known.type != run.type:
            raise TypeError(f"Data type mismatch of variable: `{name}`: {known.type} != {run.type}")
        up, down = "_it < _stop", "_it > _stop"
        test = {1: up, -1: down, 0: f"_step >= 0 ? {up} : {down}"}[run.step_sign]
        parts = f"_it = {run.start.code}, _stop = {run.stop.code}, _step = {run.step.code}"
        head = f"for ({run.type.cpp} {parts}; {test}; _it += _step) {{"
        lines = [head, f"  {name} = _it;", *_indented(self._block(node.body, False)), "}"]
        if run.unroll is True:
            return ["#pragma unroll", *lines]
        return lines if run.unroll is None else [f"#pragma unroll({run.unroll})", *lines]


def _at(node: ast.stmt, error: Exception) -> Exception:
    """Return ``error`` with the place in the source, once."""
    if getattr(error, "kernel_line", None) is None:
        try:
            placed = type(error)(f"{error.args[0] if error.args else error}\n\n> {ast.unparse(node)}")
        except TypeError:  # an exception that is not made of one text
            placed = error
        placed.kernel_line = node.lineno  # type: ignore[attr-defined]
        return placed
    return error


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"  {line}" for line in lines]


def _declared(kind: Type, name: str) -> str:
    return f"{kind.cpp} {name}"


def _parameters(definition: ast.FunctionDef, given: int) -> list[str]:
    arguments = definition.args
    for decorator in definition.decorator_list:
        text = ast.unparse(decorator)
        if "rawkernel" not in text and "vectorize" not in text:
            warnings.warn(f"Decorator {text} may not supported in JIT.", RuntimeWarning, stacklevel=3)
    for what, present in (
        ("`*args` is", arguments.vararg),
        ("keyword only arguments are", arguments.kwonlyargs),
        ("`**kwargs` is", arguments.kwarg),
        ("default values are", arguments.defaults),
    ):
        if present:
            raise NotImplementedError(f"{what} not supported currently.")
    names = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
    if len(names) != given:
        raise TypeError(f"{definition.name}() takes {len(names)} positional arguments but {given} were given.")
    return names
