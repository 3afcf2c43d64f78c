"""Python expressions as C++."""

from __future__ import annotations

import ast
import inspect
import math
import warnings
from typing import Any

import numpy as np

from gpu_backend.devices.cpu.kernels.jit import rules
from gpu_backend.devices.cpu.kernels.jit.builtins import BUILTINS, JIT_NAMES, PYTHON_NAMES
from gpu_backend.devices.cpu.kernels.jit.values import (
    BOOL,
    INT64,
    UINT32,
    ArrayOf,
    Constant,
    Dimensions,
    Expression,
    Mode,
    ModuleName,
    Pointer,
    Scalar,
    TupleOf,
    Value,
    literal,
    scalar_type,
)

_ARRAY_MODULES = ("cupy", "numpy", "cupyx")


class UfuncName(str):
    """A ufunc, by name."""


class ExpressionCompiler:
    """Compiles the expressions of one function.

    Attributes
    ----------
    mode
        How constants and mixed operands are typed.
    variables
        What each name of the function stands for by now.
    """

    def __init__(self, mode: Mode, variables: dict[str, Expression]) -> None:
        self.mode = mode
        self.variables = variables
        self.declarations: list[str] = []
        self._fresh = 0

    # ---- what builtins use ----

    def fresh_name(self, prefix: str) -> str:
        """Return a name that the function does not use."""
        while True:
            self._fresh += 1
            name = f"{prefix}{self._fresh}"
            if name not in self.variables:
                return name

    def declare(self, text: str) -> None:
        """Put a declaration at the head of the function."""
        self.declarations.append(text)

    def number(self, value: Expression) -> Value:
        """Return ``value`` as C++ code; a constant gets the type that the mode gives it."""
        if isinstance(value, Value):
            return value
        if not isinstance(value, Constant):
            raise TypeError("a range is not a value")
        if isinstance(value.value, tuple):
            return self.tuple_of(tuple(self.number(Constant(item)) for item in value.value))
        kind = scalar_type(value.value, self.mode)
        return Value(literal(value.value, kind.dtype), kind)

    def cast(self, value: Expression, target: Scalar, casting: Any = "unsafe") -> Value:
        """Return ``value`` as ``target``.

        Raises
        ------
        TypeError
            If it is no number, or ``casting`` does not allow it.
        """
        if isinstance(value, Constant):
            return Value(literal(value.value, target.dtype), target)
        if not isinstance(value, Value) or not isinstance(value.type, Scalar):
            raise TypeError(f"{value} is not scalar type.")
        source = value.type.dtype
        if source == target.dtype:
            return value
        if not np.can_cast(source, target.dtype, casting):
            raise TypeError(f"Cannot cast from '{source}' to {target.dtype} with casting rule {casting}.")
        if source.kind == "c" and target.dtype.kind != "c":
            if target.dtype.kind != "b":
                text = "Casting complex values to real discards the imaginary part"
                warnings.warn(text, np.exceptions.ComplexWarning, stacklevel=2)
                return Value(f"static_cast<{target.cpp}>({value.code}.real())", target)
            return Value(f"({value.code} != {Scalar(source).cpp}())", target)
        if target.dtype.kind == "b":
            return Value(f"({value.code} != 0)", target)
        return Value(f"static_cast<{target.cpp}>({value.code})", target)

    def tuple_of(self, items: tuple[Value, ...]) -> Value:
        """Return a tuple."""
        codes = ", ".join(_settled(item) for item in items)
        return Value(f"gpu::make_tuple({codes})", TupleOf(tuple(item.type for item in items)), items)

    def ufunc(self, name: str, operands: list[Expression], dtype: object = None) -> Value:
        """Return the call of a ufunc on numbers."""
        dtypes = []
        for operand in operands:
            kind = scalar_type(operand.value, self.mode) if isinstance(operand, Constant) else self.number(operand).type
            if not isinstance(kind, Scalar):
                raise TypeError(f"cupy.ufunc: {kind} is unsupported")
            dtypes.append(kind.dtype)
        inputs, result = rules.choose_loop(name, dtypes, self.mode, dtype)
        return rules.apply(
            name,
            [self.cast(operand, Scalar(kind), "same_kind") for operand, kind in zip(operands, inputs, strict=True)],
            result,
        )

    def index(self, array: Expression, index: Expression) -> Expression:
        """Return ``array[index]``: an element, or the array of the axes that are left."""
        if isinstance(array, Constant):
            if isinstance(index, Constant):
                return Constant(array.value[index.value])
            raise TypeError(f"{type(array.value)} is not subscriptable with non-constants.")
        if not isinstance(array, Value):
            raise TypeError("a range is not subscriptable.")
        if isinstance(array.type, TupleOf):
            return self._member(array, index)
        if not isinstance(array.type, ArrayOf | Pointer):
            raise TypeError(f"{array.code} is not subscriptable.")
        items = self._indices(index)
        ndim = array.type.ndim if isinstance(array.type, ArrayOf) else 1
        if not isinstance(index, Constant | Value) or (ndim == 0 and not self._is_tuple(index)):
            raise TypeError("Scalar indexing is not supported for 0-dim array.")
        if len(items) > ndim:
            raise IndexError(f"The number of indices is beyond array dim: {ndim}")
        codes = ", ".join(item.code for item in items)
        if len(items) < ndim and isinstance(array.type, ArrayOf):
            left = ArrayOf(array.type.dtype, ndim - len(items), array.type.contiguous)
            return Value(f"gpu::slice({array.code}, {codes})", left)
        element = Scalar(array.type.dtype)
        if ndim == 1:
            return Value(f"{array.code}[{codes}]", element)
        return Value(f"{array.code}.element({codes})" if items else f"{array.code}[0]", element)

    def _is_tuple(self, index: Expression) -> bool:
        return (isinstance(index, Constant) and isinstance(index.value, tuple)) or (
            isinstance(index, Value) and isinstance(index.type, TupleOf)
        )

    def _indices(self, index: Expression) -> list[Value]:
        value = self.number(index)
        items = [value]
        if isinstance(value.type, TupleOf):
            items = [self._item(value, n) for n in range(len(value.type.items))]
        for item in items:
            if isinstance(item.type, ArrayOf):
                raise TypeError("Advanced indexing is not supported.")
            if not isinstance(item.type, Scalar) or item.type.dtype.kind not in "iu":
                raise TypeError("Array indices must be integers.")
        return items

    def _item(self, value: Value, number: int) -> Value:
        assert isinstance(value.type, TupleOf)
        return (
            value.items[number] if value.items else Value(f"gpu::get<{number}>({value.code})", value.type.items[number])
        )

    def _member(self, value: Value, index: Expression) -> Value:
        assert isinstance(value.type, TupleOf)
        if not isinstance(index, Constant):
            raise TypeError("Tuple is not subscriptable with non-constants.")
        return self._item(value, range(len(value.type.items))[index.value])

    # ---- the syntax tree ----

    def expression(self, node: ast.expr | None) -> Expression:
        """Return what ``node`` stands for."""
        if node is None:
            return Constant(None)
        method = getattr(self, f"_{type(node).__name__.lower()}", None)
        if method is None:
            raise NotImplementedError(f"Not supported: {type(node).__name__}")
        result: Expression = method(node)
        if isinstance(result, Constant) and isinstance(result.value, Value):
            return result.value
        return result

    def _constant(self, node: ast.Constant) -> Expression:
        return Constant(node.value)

    def _name(self, node: ast.Name) -> Expression:
        try:
            return self.variables[node.id]
        except KeyError:
            raise NameError(f"Unbound name: {node.id}") from None

    def _tuple(self, node: ast.Tuple) -> Expression:
        items = [self.expression(item) for item in node.elts]
        if all(isinstance(item, Constant) for item in items):
            return Constant(tuple(item.value for item in items if isinstance(item, Constant)))
        return self.tuple_of(tuple(self.number(item) for item in items))

    def operate(self, operation: ast.AST, operands: list[Expression]) -> Expression:
        """Return an operator applied to its operands; at once if all are constants."""
        if all(isinstance(operand, Constant) for operand in operands):
            function = rules.PYTHON_OF[type(operation)]
            return Constant(function(*[operand.value for operand in operands if isinstance(operand, Constant)]))
        if type(operation) not in rules.UFUNC_OF:
            raise NotImplementedError(f"Not supported: {type(operation).__name__}")
        return self.ufunc(rules.UFUNC_OF[type(operation)], operands)

    def _binop(self, node: ast.BinOp) -> Expression:
        return self.operate(node.op, [self.expression(node.left), self.expression(node.right)])

    def _unaryop(self, node: ast.UnaryOp) -> Expression:
        return self.operate(node.op, [self.expression(node.operand)])

    def _boolop(self, node: ast.BoolOp) -> Expression:
        value, *others = [self.expression(item) for item in node.values]
        for other in others:
            value = self.operate(node.op, [value, other])
        return value

    def _compare(self, node: ast.Compare) -> Expression:
        if len(node.ops) != 1:
            raise NotImplementedError("Comparison of 3 or more values is not implemented.")
        return self.operate(node.ops[0], [self.expression(node.left), self.expression(node.comparators[0])])

    def _ifexp(self, node: ast.IfExp) -> Expression:
        condition = self.expression(node.test)
        chosen, other = self.expression(node.body), self.expression(node.orelse)
        if isinstance(condition, Constant):
            return chosen if condition.value else other
        if isinstance(condition, Value) and isinstance(condition.type, Scalar) and condition.type.dtype.kind == "c":
            raise TypeError("Complex type value cannot be boolean condition.")
        first, second = self._alike(chosen, other), self._alike(other, chosen)
        if first.type != second.type:
            raise TypeError(f"Type mismatch in conditional expression.: {first.type} != {second.type}")
        return Value(f"({self.cast(condition, BOOL).code} ? {first.code} : {second.code})", first.type)

    def _alike(self, value: Expression, other: Expression) -> Value:
        # A bare Python number takes the type of the other side.
        if isinstance(value, Constant) and not isinstance(value.value, np.generic):
            kind = self.number(other).type
            if isinstance(kind, Scalar):
                if not np.can_cast(scalar_type(value.value, self.mode).dtype, kind.dtype, "same_kind"):
                    raise TypeError(f"Cannot cast {value.value} to {kind.dtype} with casting rule same_kind.")
                return self.cast(value, kind)
        return self.number(value)

    def _subscript(self, node: ast.Subscript) -> Expression:
        return self.index(self.expression(node.value), self.expression(node.slice))

    def _attribute(self, node: ast.Attribute) -> Expression:
        value = self.expression(node.value)
        if isinstance(value, Constant):
            if isinstance(value.value, ModuleName):
                return Constant(module_attribute(value.value, node.attr))
            if node.attr.startswith("_"):
                raise AttributeError(f"Unknown attribute: {node.attr}")
            return Constant(getattr(value.value, node.attr))
        if isinstance(value, Value):
            if isinstance(value.type, Dimensions) and node.attr in ("x", "y", "z"):
                return Value(f"{value.code}.{node.attr}", UINT32)
            if isinstance(value.type, ArrayOf):
                return self._array_attribute(value, value.type, node.attr)
        raise AttributeError(f"Unknown attribute: {node.attr}")

    def _array_attribute(self, value: Value, kind: ArrayOf, name: str) -> Expression:
        if name == "ndim":
            return Constant(kind.ndim)
        if name == "size":
            return Value(f"static_cast<long long>({value.code}.size())", INT64)
        if name in ("shape", "strides"):
            extents = (Value(f"static_cast<long long>({value.code}.{name}()[{d}])", INT64) for d in range(kind.ndim))
            return self.tuple_of(tuple(extents))
        if name == "dtype":
            return Constant(kind.dtype)
        raise AttributeError(f"Unknown attribute: {name}")

    def _call(self, node: ast.Call) -> Expression:
        function = self.expression(node.func)
        operands = [self.expression(item) for item in node.args]
        keywords = {keyword.arg or "": self.expression(keyword.value) for keyword in node.keywords}
        if not isinstance(function, Constant):
            raise TypeError(f"'{ast.unparse(node.func)}' is not callable.")
        called = function.value
        builtin = PYTHON_NAMES.get(called) if _is_hashable(called) else None
        if builtin is not None or (_is_hashable(called) and called in BUILTINS):
            result: Expression = (builtin or called)(self, *operands, **keywords)
            return result
        if isinstance(called, UfuncName):
            dtype = keywords.pop("dtype", Constant(None))
            if keywords:
                raise TypeError(f"'{next(iter(keywords))}' is an invalid keyword to ufunc cupy_{called}")
            return self.ufunc(called, operands, dtype.value if isinstance(dtype, Constant) else None)
        return self.call_object(called, operands, keywords)

    def call_object(self, called: Any, operands: list[Expression], keywords: dict[str, Expression]) -> Expression:
        """Return the call of a Python object: at once on constants, or a conversion to a NumPy or Python type."""
        if all(isinstance(item, Constant) for item in (*operands, *keywords.values())):
            values = [item.value for item in operands if isinstance(item, Constant)]
            named = {key: item.value for key, item in keywords.items() if isinstance(item, Constant)}
            return Constant(called(*values, **named))
        if inspect.isclass(called) and issubclass(called, bool | int | float | complex | np.number | np.bool_):
            if len(operands) != 1:
                raise TypeError(f"function takes {called} invalid number of argument")
            return self.cast(operands[0], Scalar(np.dtype(called)))
        raise TypeError(f"Invalid function call '{getattr(called, '__name__', called)}'.")


def _settled(value: Value) -> str:
    """Return code that has exactly the type of ``value``, where C++ would deduce a wider one."""
    kind = value.type
    small = isinstance(kind, Scalar) and kind.dtype.itemsize < 4 and kind.dtype.kind != "b"
    return f"static_cast<{kind.cpp}>({value.code})" if small else value.code


def _is_hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def module_attribute(module: ModuleName, name: str) -> Any:
    """Return what a kernel may use of a module: ufuncs, types and constants of arrays, ``cupyx.jit``, ``math``."""
    path = f"{module.path}.{name}"
    if module.path == "cupyx.jit" and name in JIT_NAMES:
        return JIT_NAMES[name]
    if path == "cupyx.jit":
        return ModuleName(path)
    if module.path.split(".")[0] in _ARRAY_MODULES:
        if path == "cupyx.rsqrt" or (found := rules.ufunc_name(name)) is None:
            known = getattr(np, name, None)
            if (
                isinstance(known, float)
                or known is np.dtype
                or (inspect.isclass(known) and issubclass(known, np.generic))
            ):
                return known
        else:
            return UfuncName(found)
    if module.path == "math" and not name.startswith("_"):
        return getattr(math, name)
    raise AttributeError(f"kernels written in Python cannot use {path!r}")
