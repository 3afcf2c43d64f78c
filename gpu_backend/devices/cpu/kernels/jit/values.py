"""What an expression of a Python kernel stands for while it is compiled: a constant, or C++ code of a known type."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from gpu_backend.devices.cpu.kernels.typenames import type_name

DType = np.dtype[Any]

#: How Python's own numbers and mixed operands are typed: as on the GPU (32 bits where they fit) or as in NumPy.
Mode = Literal["cuda", "numpy"]


@dataclass(frozen=True)
class Scalar:
    """One number."""

    dtype: DType

    @property
    def cpp(self) -> str:
        """C++ name of the type."""
        return type_name(self.dtype)


@dataclass(frozen=True)
class ArrayOf:
    """A strided array."""

    dtype: DType
    ndim: int
    contiguous: bool

    @property
    def cpp(self) -> str:
        """C++ name of the type."""
        return f"CArray<{type_name(self.dtype)}, {self.ndim}, {int(self.contiguous and self.ndim > 0)}, 1>"


@dataclass(frozen=True)
class Pointer:
    """Shared memory."""

    dtype: DType

    @property
    def cpp(self) -> str:
        """C++ name of the type."""
        return f"{type_name(self.dtype)} *"


@dataclass(frozen=True)
class TupleOf:
    """A tuple with members of known types."""

    items: tuple[Any, ...]

    @property
    def cpp(self) -> str:
        """C++ name of the type."""
        return f"gpu::Tuple<{', '.join(item.cpp for item in self.items)}>"


@dataclass(frozen=True)
class Void:
    """Nothing."""

    cpp = "void"


@dataclass(frozen=True)
class Dimensions:
    """``threadIdx`` and its kin."""

    cpp = "dim3"


Type = Scalar | ArrayOf | Pointer | TupleOf | Void | Dimensions


@dataclass(frozen=True)
class Constant:
    """A Python object known when the kernel is compiled."""

    value: Any


@dataclass(frozen=True)
class Value:
    """C++ code. ``items`` are the members' own codes where the value is a tuple that need not be built."""

    code: str
    type: Type
    items: tuple[Value, ...] = field(default=(), compare=False)


@dataclass(frozen=True)
class Range:
    """What a ``for`` runs over."""

    start: Value
    stop: Value
    step: Value
    type: Scalar
    step_sign: int  #: 1, -1, or 0 if it is not known
    unroll: bool | int | None


Expression = Constant | Value | Range


@dataclass(frozen=True)
class ModuleName:
    """A module that a kernel's source names, by its path; nothing of it is imported."""

    path: str


BOOL = Scalar(np.dtype(np.bool_))
INT32 = Scalar(np.dtype(np.int32))
INT64 = Scalar(np.dtype(np.int64))
UINT32 = Scalar(np.dtype(np.uint32))


def scalar_type(value: object, mode: Mode) -> Scalar:
    """Return the type of a constant number.

    Raises
    ------
    NotImplementedError
        If it is no number.
    """
    if isinstance(value, np.generic):
        return Scalar(value.dtype)
    wide = mode == "numpy"
    if isinstance(value, bool):
        return BOOL
    if isinstance(value, int):
        return INT64 if wide or not -(1 << 31) <= value < 1 << 31 else INT32
    if isinstance(value, float):
        return Scalar(np.dtype(np.float64 if wide else np.float32))
    if isinstance(value, complex):
        return Scalar(np.dtype(np.complex128 if wide else np.complex64))
    raise NotImplementedError(f"{value} is not scalar object.")


def literal(value: object, dtype: DType) -> str:
    """Return the C++ literal of a number of ``dtype``.

    Raises
    ------
    OverflowError
        If an int is out of range.
    """
    number = np.array(value).astype(dtype)[()] if not isinstance(value, int) else dtype.type(value)
    kind, wide = dtype.kind, dtype.itemsize >= 8
    if kind == "b":
        return "true" if number else "false"
    if kind in "iu":
        if int(number) == -(1 << 63):
            return "(-9223372036854775807LL - 1)"
        return f"{int(number)}{'u' if kind == 'u' else ''}{'ll' if wide else ''}"
    if kind == "c":
        part = np.dtype(np.float64 if dtype.itemsize == 16 else np.float32)
        return f"{type_name(dtype)}({literal(number.real, part)}, {literal(number.imag, part)})"
    suffix = "" if wide else "f"
    if np.isnan(number):
        text = f'__builtin_nan{suffix}("")'
    elif np.isinf(number):
        text = f"{'-' if number < 0 else ''}__builtin_huge_val{suffix}()"
    else:
        text = f"{float(number)!r}{suffix}"
    return f"float16({text})" if dtype.itemsize == 2 else text
