"""The parameter lists of ``ElementwiseKernel`` and ``ReductionKernel``, and how arguments decide their types.

A parameter is "[raw] [_non_const] type name". A type of one letter is a placeholder: all parameters of that letter
share the dtype of the first array found among the outputs, then the inputs. Python and NumPy scalars decide nothing;
they are converted to the type that the arrays decide. Source: CuPy's user guide, "User-Defined Kernels".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gpu_backend.devices.cpu.dtypes import require_64_bits
from gpu_backend.devices.cpu.kernels.typenames import type_name
from gpu_backend.devices.cpu.naming import describe_as

DType = np.dtype[Any]


class ParameterInfo:
    """One parameter.

    Attributes
    ----------
    name
        As the kernel's code uses it.
    dtype
        Its fixed type, or None for a placeholder.
    ctype
        C++ type: the placeholder's letter or the C++ name of ``dtype``.
    raw
        Whether the code indexes it by itself.
    is_const
        Whether the code may not write to it.
    """

    __slots__ = ("ctype", "dtype", "is_const", "name", "raw")

    def __init__(self, param: str, is_const: bool) -> None:
        words = param.split()
        if len(words) < 2:
            raise Exception(f"Syntax error: {param}")  # CuPy's own class for it
        self.is_const = is_const
        self.raw = False
        kind, self.name = words[-2:]
        self.dtype: DType | None = None
        self.ctype: str | None = None
        if len(kind) == 1:
            self.ctype = kind
        elif kind != "CIndexer":
            self.dtype = np.dtype(kind)
            self.ctype = type_name(self.dtype)
        for word in words[:-2]:
            if word == "raw":
                self.raw = True
            elif word == "_non_const":
                self.is_const = False
            else:
                raise Exception(f'Unknown keyword "{word}"')  # CuPy's own class for it

    def _key(self) -> tuple[object, ...]:
        return self.name, self.dtype, self.ctype, self.raw, self.is_const

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ParameterInfo) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return (
            f"<ParameterInfo(name={self.name!r} dtype={self.dtype!r} ctype={self.ctype!r} raw={self.raw!r} "
            f"is_const={self.is_const!r})>"
        )


describe_as("cupy._core._kernel.ParameterInfo", ParameterInfo)


def parse_parameters(text: str, is_const: bool) -> tuple[ParameterInfo, ...]:
    """Return the parameters that the comma-separated ``text`` declares."""
    return tuple(ParameterInfo(part, is_const) for part in text.strip().split(",")) if text else ()


def check_kernel_name(name: str) -> None:
    """Raise ``ValueError`` unless ``name`` can be the name of a kernel."""
    if re.match("^[a-zA-Z_][a-zA-Z_0-9]*$", name) is None:
        raise ValueError(f'Invalid kernel name: "{name}"')


class Types(NamedTuple):
    """The types of one call: of each input, each output, and each placeholder."""

    inputs: tuple[DType, ...]
    outputs: tuple[DType, ...]
    placeholders: tuple[tuple[str, DType], ...]


def decide_types(
    in_params: Sequence[ParameterInfo],
    out_params: Sequence[ParameterInfo],
    in_dtypes: Sequence[DType | None],
    out_dtypes: Sequence[DType | None],
) -> Types:
    """Return the types of a call.

    Parameters
    ----------
    in_params, out_params
        The kernel's parameters.
    in_dtypes
        The dtype of each array among the inputs, None for scalars.
    out_dtypes
        The same for the outputs; empty if none was given.

    Raises
    ------
    TypeError
        If an array has another dtype than its parameter or placeholder.
    KeyError
        If no array decides a placeholder.
    """
    known: dict[str, DType] = {}
    if out_dtypes:
        for param, dtype in zip(out_params, out_dtypes, strict=True):
            if dtype is None:
                raise TypeError("Output arguments must be cupy.ndarray")
            _agree(param, dtype, known)
    for param, dtype in zip(in_params, in_dtypes, strict=True):
        if dtype is not None:
            _agree(param, dtype, known)
    return Types(
        tuple(_type_of(param, known) for param in in_params),
        tuple(_type_of(param, known) for param in out_params),
        tuple(sorted(known.items())),
    )


def _type_of(param: ParameterInfo, known: dict[str, DType]) -> DType:
    return known[param.ctype or ""] if param.dtype is None else param.dtype


def _agree(param: ParameterInfo, dtype: DType, known: dict[str, DType]) -> None:
    if param.dtype is not None:
        if dtype != param.dtype:
            raise TypeError(f"Type is mismatched. {param.name} {dtype} {param.dtype}")
    elif known.setdefault(param.ctype or "", dtype) != dtype:
        raise TypeError(f"Type is mismatched. {param.name} {dtype} {known[param.ctype or '']} {param.ctype}")


def typedefs(placeholders: Sequence[tuple[str, DType]]) -> str:
    """Return the C++ declarations of the placeholders."""
    return "".join(f"typedef {type_name(dtype)} {letter};\n" for letter, dtype in placeholders)


SCALARS = (bool, int, float, complex, np.generic)


def check_scalar(value: object) -> None:
    """Raise ``TypeError`` unless ``value`` is a scalar that a kernel can take."""
    if not isinstance(value, SCALARS) or (isinstance(value, np.generic) and value.dtype.kind in "OSUMm"):
        raise TypeError(f"Unsupported type {type(value)}")


def scalar_array(value: object, dtype: DType) -> np.ndarray[Any, Any]:
    """Return ``value`` in the memory of a 0-d array of ``dtype``.

    Raises
    ------
    OverflowError
        If a Python int is out of the range of ``dtype``, or of 64 bits.
    """
    require_64_bits(value)
    array = np.empty((), dtype)
    array[()] = value
    return array
