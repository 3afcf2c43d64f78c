"""``cupyx.scipy.sparse.linalg.LinearOperator``: a matrix given by what it does, with the functions of the notebook."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np

from gpu_backend.wire import values as wire
from kernelproxy.calls import dispatch
from kernelproxy.calls.argument_types import DTypeLike
from kernelproxy.calls.array_core import ArrayCore
from kernelproxy.calls.remote_object import RemoteObject
from kernelproxy.calls.stand_ins import bind, keep_functions

_QUALNAME = "cupyx.scipy.sparse.linalg.LinearOperator"


class LinearOperator(RemoteObject):
    """A linear operator; parameters as in CuPy. Subclasses define ``_matvec`` or ``_matmat`` here in the notebook."""

    _qualname = _QUALNAME
    ndim = 2

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Construct the operator in the executor; that of a subclass comes to be there when it is first used."""
        if cls is LinearOperator:
            return dispatch.call(_QUALNAME, args, kwargs)
        if cls._matvec is LinearOperator._matvec and cls._matmat is LinearOperator._matmat:
            told = "LinearOperator subclass should implement at least one of _matvec and _matmat."
            warnings.warn(told, RuntimeWarning, stacklevel=2)
        return object.__new__(cls)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Take ``dtype`` and ``shape`` of a subclass; the executor has done what there is to do for others."""
        if type(self) is not LinearOperator:
            self._describe(*args, **kwargs)

    def _describe(self, dtype: DTypeLike, shape: Iterable[int]) -> None:
        shape = tuple(shape)
        if len(shape) != 2:
            raise ValueError(f"invalid shape {shape!r} (must be 2-d)")
        self.dtype = None if dtype is None else np.dtype(dtype)
        self.shape = shape

    def __setattr__(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def _wire_value(self) -> wire.Ref:
        if "_handle" not in self.__dict__:
            given = {name: self._own(f"_{name}") for name in ("matvec", "rmatvec", "matmat", "rmatmat")}
            made = dispatch.call(_QUALNAME, (), {"shape": self.shape, "dtype": self.dtype, **given})
            keep_functions(self, made._functions)
            object.__setattr__(made, "_dropped", [])  # the handle is ours from here on
            bind(self, made._client, made._handle)
        return wire.Ref(self._handle)

    def _own(self, name: str) -> Any:
        """Return a method that a subclass defines, or what stands for it."""
        if self._defines(name):
            return getattr(self, name)
        if name == "_matvec":
            return self._columnwise
        if name in ("_rmatvec", "_rmatmat") and self._defines("_adjoint"):
            return self._adjoint_matvec if name == "_rmatvec" else self._adjoint_matmat
        return None

    def _defines(self, name: str) -> bool:
        return getattr(type(self), name) is not getattr(LinearOperator, name)

    def _columnwise(self, x: ArrayCore) -> Any:
        return self._matmat(x.reshape(-1, 1))

    def _adjoint_matvec(self, x: ArrayCore) -> Any:
        return self._adjoint().matvec(x)

    def _adjoint_matmat(self, X: ArrayCore) -> Any:  # noqa: N803 (SciPy's name)
        return self._adjoint().matmat(X)

    def adjoint(self) -> Any:
        """Return the Hermitian adjoint, which a subclass may define as ``_adjoint``."""
        return self._adjoint()

    def transpose(self) -> Any:
        """Return the transpose, which a subclass may define as ``_transpose``."""
        return self._transpose()

    H = property(adjoint)
    T = property(transpose)

    def _adjoint(self) -> Any:
        return dispatch.ask_object(".method", self, "adjoint")

    def _transpose(self) -> Any:
        return dispatch.ask_object(".method", self, "transpose")

    def _matvec(self, x: ArrayCore) -> Any:
        raise NotImplementedError

    def _rmatvec(self, x: ArrayCore) -> Any:
        raise NotImplementedError

    def _matmat(self, X: ArrayCore) -> Any:  # noqa: N803 (SciPy's name)
        raise NotImplementedError

    def _rmatmat(self, X: ArrayCore) -> Any:  # noqa: N803 (SciPy's name)
        raise NotImplementedError
