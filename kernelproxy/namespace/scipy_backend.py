"""Remote CuPy as a backend of SciPy: ``with scipy.fft.set_backend(cupyx.scipy.fft)`` and the same of ``scipy.linalg``.

SciPy asks a backend for three names: the domain it serves, how to convert arguments, and what to call instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

import numpy as np

from gpu_backend.opstream import surface
from kernelproxy.calls.array_core import ArrayCore
from kernelproxy.namespace.creation import asarray
from kernelproxy.namespace.names import make

FFT_DOMAIN = "numpy.scipy.fft"
LINALG_DOMAIN = "numpy.scipy.linalg"

#: What stands in for SciPy's linear algebra although CuPy has it under another module.
_OF_NUMPY_LINALG = frozenset("eigh eigvalsh cholesky qr svd norm det solve lstsq inv pinv".split())


class Marked(Protocol):
    """An argument as SciPy offers it: what it is, what it was marked as, and whether it may be made another."""

    value: Any
    type: type
    coercible: bool


def convert(dispatchables: Iterable[Marked], coerce: bool) -> Any:
    """Return the arguments that a backend was offered, as remote arrays if SciPy says that they may be converted.

    Called by SciPy. NotImplemented lets it try the next backend.
    """
    marked = list(dispatchables)
    values = [one.value for one in marked]
    if coerce:
        try:
            values = [asarray(one.value) if one.coercible and one.type is np.ndarray else one.value for one in marked]
        except TypeError:
            return NotImplemented
    if all(
        one.type is not np.ndarray or isinstance(value, ArrayCore) for one, value in zip(marked, values, strict=True)
    ):
        return values
    return NotImplemented


def fft_function(method: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, object]) -> Any:
    """Carry out a function of ``scipy.fft`` remotely. Called by SciPy; NotImplemented if CuPy has no such function."""
    return _carry_out(lambda name: f"cupyx.scipy.fft.{name}", method, args, kwargs)


def linalg_function(method: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, object]) -> Any:
    """Carry out a function of ``scipy.linalg`` remotely. Called by SciPy; NotImplemented if CuPy has none."""

    def place(name: str) -> str:
        return f"cupy.linalg.{name}" if name in _OF_NUMPY_LINALG else f"cupyx.scipy.linalg.{name}"

    return _carry_out(place, method, args, kwargs)


def _carry_out(
    place: Callable[[str], str], method: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, object]
) -> Any:
    qualname = place(str(method.__name__))
    described = surface.load()
    if not described.is_public(qualname) or not isinstance(described.resolved(qualname), surface.Function):
        return NotImplemented
    return make(qualname)(*args, **kwargs)
