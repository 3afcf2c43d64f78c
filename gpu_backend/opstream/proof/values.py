"""What a call may be given, as types. What is said of the call has its types in `outcome`.

A program may pass anything at all, so a rule takes an `object` and asks what it is: the guards here tell, and readers
such as `arguments.as_index` give it the type it has, or end the rule. A parameter declared as an array, `shadow.Array`,
is one: the registry looks before it calls the rule.
"""

from __future__ import annotations

from types import EllipsisType
from typing import TypeAlias, TypeGuard

import numpy as np

from gpu_backend.opstream.layout import DType, Layout

#: A real number of Python's own.
Real: TypeAlias = int | float
#: A scalar of the host, of Python or NumPy.
Scalar: TypeAlias = int | float | complex | np.generic
#: What a ufunc computes with.
Operand: TypeAlias = Layout | Scalar
#: Several values in one argument.
Items: TypeAlias = list[object] | tuple[object, ...]
#: A part of an index that selects a view by itself.
BasicIndex: TypeAlias = int | np.integer | slice | EllipsisType | None

_PYTHON_SCALARS = frozenset({bool, int, float, complex})


def is_items(value: object) -> TypeGuard[Items]:
    """Tell whether ``value`` is a list or tuple, to CuPy several values."""
    return isinstance(value, (list, tuple))


def is_tuple(value: object) -> TypeGuard[tuple[object, ...]]:
    """Tell whether ``value`` is a tuple, which is what is an index of several parts, or several axes."""
    return isinstance(value, tuple)


def is_integer(value: object) -> TypeGuard[int | np.integer]:
    """Tell whether ``value`` is an integer of Python or NumPy, or a bool of Python."""
    return isinstance(value, (int, np.integer))


def is_real(value: object) -> TypeGuard[Real]:
    """Tell whether ``value`` is an int or float of Python itself: no bool, and of no class derived from them."""
    return type(value) is float or type(value) is int


def is_python_scalar(value: object) -> TypeGuard[int | float | complex]:
    """Tell whether ``value`` is a bool, int, float or complex of Python itself."""
    return type(value) in _PYTHON_SCALARS


def is_scalar(value: object) -> TypeGuard[Scalar]:
    """Tell whether ``value`` is a scalar of the host: of Python or a class derived from its own, or of NumPy."""
    return isinstance(value, (int, float, complex, np.generic))


def is_record(value: object) -> TypeGuard[DType]:
    """Tell whether ``value`` is a dtype with fields that hold something."""
    return isinstance(value, np.dtype) and value.fields is not None and value.type is np.void and value.itemsize > 0
