"""The elementwise ops that most programs consist of, on the types that they use: what is worth compiling beforehand."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import numpy as np

from gpu_backend.devices.segments import Kind
from gpu_backend.opstream.layout import DType

__all__ = ["Usual", "usual_ops"]

_BOOL: DType = np.dtype(np.bool_)
_FLOATS: tuple[DType, ...] = (np.dtype(np.float64), np.dtype(np.float32))
_INTEGERS: tuple[DType, ...] = (np.dtype(np.int64), np.dtype(np.int32))
_REAL = _FLOATS + _INTEGERS
_COMPLEX: tuple[DType, ...] = (np.dtype(np.complex128), np.dtype(np.complex64))

#: Names by the types that all their operands have.
_BINARY: tuple[tuple[str, tuple[DType, ...]], ...] = (
    ("add subtract multiply true_divide maximum minimum floor_divide remainder", _REAL),
    ("equal not_equal less less_equal greater greater_equal", _REAL),
    ("power arctan2 hypot", _FLOATS),
    ("bitwise_and bitwise_or bitwise_xor left_shift right_shift", _INTEGERS),
    ("logical_and logical_or bitwise_and bitwise_or bitwise_xor equal not_equal", (_BOOL,)),
    ("add subtract multiply true_divide", _COMPLEX),
)
_UNARY: tuple[tuple[str, tuple[DType, ...]], ...] = (
    ("negative absolute square sign", _REAL),
    ("sqrt reciprocal exp log log1p expm1 sin cos tan tanh arctan floor ceil rint isnan isfinite", _FLOATS),
    ("logical_not invert", (_BOOL,)),
    ("invert", _INTEGERS),
    ("negative absolute square conjugate exp", _COMPLEX),
)
#: Of two types: numbers with what was compared or counted, and real numbers with complex ones.
_MIXED: tuple[tuple[str, tuple[tuple[DType, DType], ...]], ...] = (
    ("multiply", tuple((_BOOL, one) for one in _FLOATS)),
    ("add subtract multiply true_divide", ((_INTEGERS[0], _FLOATS[0]), *zip(_FLOATS, _COMPLEX, strict=True))),
)


class Usual(NamedTuple):
    """One op, and of which kinds its operands are; of a copy, which has no name, the target is the second.

    A mask behind that says where it copies.
    """

    name: str
    kinds: tuple[Kind, ...]


def usual_ops() -> Iterator[Usual]:
    """Yield them, always in the same order; those without a name copy their operand into what lies there."""
    for pairs, count in ((_BINARY, 2), (_UNARY, 1)):
        for names, dtypes in pairs:
            for name, dtype in product(names.split(), dtypes):
                yield Usual(f"cupy.{name}", (dtype,) * count)
    for names, mixed in _MIXED:
        for name, (one, other) in product(names.split(), mixed):
            yield Usual(f"cupy.{name}", (one, other))
            yield Usual(f"cupy.{name}", (other, one))
    for dtype in _REAL:
        yield Usual("cupy.where", (_BOOL, dtype, dtype))
    for one, other in product((*_REAL, _BOOL), repeat=2):
        yield Usual("", (one, other))
    for dtype in _COMPLEX:
        yield Usual("", (dtype, dtype))
    for dtype in (*_REAL, _BOOL, *_COMPLEX):
        yield Usual("", (dtype, dtype, _BOOL))
