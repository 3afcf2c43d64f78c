"""NumPy's scalars as operands: each has a type of its own, by which alone it is known what is made of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_backend.wire import values as wire
from gpu_backend.wire.dtypes import dtype_to_text
from kernelproxy import compiled

__all__ = ["SCALARS", "sent_scalar"]

#: The types of scalars that are operands by themselves, and how their dtypes travel.
SCALARS: dict[type, str] = {
    np.dtype(code).type: dtype_to_text(np.dtype(code)) for code in (*np.typecodes["AllInteger"], *"?efdFD")
}


def sent_scalar(value: Any) -> wire.Scalar:
    """Return how a scalar of one of these types travels."""
    return wire.Scalar(SCALARS[type(value)], value.tobytes())


compiled.learn(scalars=SCALARS, sent_scalar=sent_scalar)
