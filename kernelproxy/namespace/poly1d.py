"""``cupy.poly1d``: coefficients on the device; NumPy's polynomials may stand beside it."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelproxy import dispatch
from kernelproxy.namespace.creation import asarray
from kernelproxy.remote_object import RemoteObject, forward_operators


class _Arithmetic(RemoteObject):
    _qualname = "cupy.poly1d"
    locals().update(forward_operators({}, "cupy.poly1d"))


class poly1d(_Arithmetic):  # noqa: N801 (CuPy's name)
    """A polynomial in one variable; parameters as in CuPy."""

    __module__ = "cupy"
    __hash__ = None  # type: ignore[assignment]

    def __new__(cls, c_or_r: Any, r: bool = False, variable: str | None = None) -> Any:
        """Make a polynomial of coefficients, roots, or another polynomial, in the executor."""
        if isinstance(c_or_r, np.poly1d):
            c_or_r, variable = asarray(c_or_r.coeffs), variable or c_or_r.variable
        return dispatch.call(cls._qualname, (c_or_r, r, variable), {})

    def get(self, stream: Any = None) -> np.poly1d:
        """Return the polynomial as NumPy's."""
        return np.poly1d(self.coeffs.get(stream), variable=self.variable)

    def set(self, polyin: np.poly1d, stream: Any = None) -> None:
        """Take the coefficients and the variable of a polynomial of NumPy."""
        if not isinstance(polyin, np.poly1d):
            raise TypeError("Only numpy.poly1d can be set to cupy.poly1d")
        other = poly1d(polyin)
        object.__setattr__(self, "_handle", other._handle)
        object.__setattr__(other, "_dropped", [])  # the handle is ours from here on

    def __str__(self) -> str:
        return str(self.get())

    def __reduce__(self) -> Any:
        return type(self), (self.get(),)
