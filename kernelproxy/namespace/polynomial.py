"""``cupy.poly1d``: NumPy's polynomials may be given, and ``get`` makes one of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelproxy.calls import dispatch
from kernelproxy.calls.argument_types import ArrayLike, DTypeLike, StreamLike
from kernelproxy.calls.remote_object import RemoteObject
from kernelproxy.namespace.creation import asarray

_QUALNAME = "cupy.poly1d"


class poly1d(RemoteObject):  # noqa: N801 (CuPy's name)
    """A polynomial of one variable; parameters as in CuPy."""

    _qualname = "cupy.poly1d"

    @classmethod
    def _make(cls, c_or_r: np.poly1d | ArrayLike, r: bool = False, variable: str | None = None) -> Any:
        """Construct the polynomial in the executor; of NumPy's, the coefficients travel."""
        if isinstance(c_or_r, np.poly1d):
            return super()._make(asarray(c_or_r.coeffs), False, variable or c_or_r.variable)
        return super()._make(c_or_r, r, variable)

    def get(self, stream: StreamLike = None) -> np.poly1d:
        """Return the polynomial as NumPy's."""
        return np.poly1d(self.coeffs.get(stream=stream), variable=self.variable)

    def set(self, polyin: np.poly1d, stream: StreamLike = None) -> None:
        """Take over the coefficients and the variable of a polynomial of NumPy.

        Raises
        ------
        TypeError
            If it is something else.
        """
        if not isinstance(polyin, np.poly1d):
            raise TypeError("Only numpy.poly1d can be set to cupy.poly1d")
        self._variable = polyin.variable
        self.coeffs.set(polyin.coeffs, stream)

    @property
    def variable(self) -> str:
        """The name of the variable: the one that was set last, else the executor's."""
        taken = self.__dict__.get("_variable")
        return dispatch.ask_object(".getattr", self, "variable") if taken is None else taken  # type: ignore[no-any-return]

    def __cupy_get_ndarray__(self) -> Any:
        return self.coeffs

    def __array__(self, dtype: DTypeLike = None, copy: bool | None = None) -> Any:
        raise TypeError(
            "Implicit conversion to a NumPy array is not allowed. "
            "Please use `.get()` to construct a NumPy array explicitly."
        )

    def __repr__(self) -> str:
        return repr(self.get())

    def __str__(self) -> str:
        return str(self.get())

    def __reduce__(self) -> Any:
        return type(self), (self.get(),)
