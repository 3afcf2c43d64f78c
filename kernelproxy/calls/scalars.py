"""Numbers as operands: how they travel, and those of NumPy, by whose type alone it is known what is made of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_backend.wire import values as wire
from gpu_backend.wire.dtypes import dtype_to_text
from kernelproxy import compiled

__all__ = ["MOST_FLOAT", "NUMBERS", "SCALARS", "sent_number", "sent_scalar"]

#: The types of scalars that are operands by themselves, and how their dtypes travel.
SCALARS: dict[type, str] = {
    np.dtype(code).type: dtype_to_text(np.dtype(code)) for code in (*np.typecodes["AllInteger"], *"?efdFD")
}

#: The types of all numbers that are.
NUMBERS = frozenset((bool, int, float, complex, *SCALARS))

#: Up to here a float goes into every type of floats.
MOST_FLOAT = 65504.0


def sent_scalar(value: Any) -> wire.Scalar:
    """Return how a scalar of one of these types travels."""
    return wire.Scalar(SCALARS[type(value)], value.tobytes())


def sent_number(value: Any) -> wire.Value:
    """Return how a number travels: of one of these types, or one of Python's that 64 bits can hold."""
    if type(value) is complex:
        return wire.Complex(value.real, value.imag)
    return sent_scalar(value) if type(value) in SCALARS else value


compiled.learn(scalars=SCALARS, sent_number=sent_number)
