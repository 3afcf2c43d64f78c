"""Sparse matrices: SciPy's may be given wherever CuPy takes them, and ``get`` makes one of a remote matrix."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any, Protocol, TypeGuard

import numpy as np

from gpu_backend.opstream.layout import DType, SparseLayout
from gpu_backend.opstream.proof import Made
from gpu_backend.wire import values as wire
from gpu_backend.wire.dtypes import text_to_dtype
from gpu_backend.wire.errors import ProtocolError
from kernelproxy.calls import dispatch
from kernelproxy.calls.argument_types import HostArray, Index, ShapeLike, StreamLike
from kernelproxy.calls.remote_object import RemoteObject, remote_class
from kernelproxy.namespace.creation import asarray
from kernelproxy.namespace.sparse_private import CompressedMembers

#: What the notebook knows of a matrix that was described.
_DESCRIBED = frozenset({"shape", "dtype", "ndim", "nnz"})
#: What a matrix of each format is made of.
_PARTS = {
    "csr": ("data", "indices", "indptr"),
    "csc": ("data", "indices", "indptr"),
    "coo": ("data", "row", "col"),
    "dia": ("data", "offsets"),
}


class ScipyMatrix(Protocol):
    """A sparse matrix or array of SciPy; its parts have other names in each format."""

    @property
    def format(self) -> str: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def ndim(self) -> int: ...
    @property
    def dtype(self) -> DType: ...
    def asformat(self, format: str) -> Any: ...
    def nonzero(self) -> tuple[HostArray, HostArray]: ...


class _Sparse(CompressedMembers, RemoteObject):
    @classmethod
    def _make(cls, arg1: object, *args: object, **kwargs: object) -> Any:
        """Construct the matrix in the executor; from SciPy's, its parts travel."""
        if not _is_scipys(arg1):
            return super()._make(arg1, *args, **kwargs)
        host = arg1.asformat(cls._format())
        parts = [asarray(getattr(host, name)) for name in _PARTS[host.format]]
        if host.format == "coo":
            coordinates = parts[1:] if host.ndim == 2 else parts[2:]
            parts = [parts[0], tuple(coordinates)]
        if not args:
            kwargs.setdefault("shape", arg1.shape)
        if not args and _is_sound(host, kwargs):  # SciPy has looked at what CuPy looks at
            known = SparseLayout(tuple(host.shape), host.dtype)
            proof = Made(cls._qualname, 2 * sum(part.nbytes for part in parts), known)
            return dispatch.run_proved(cls._qualname, (tuple(parts),), kwargs, proof)
        made = super()._make(tuple(parts), *args, **kwargs)
        if host.format == "coo" and host.has_canonical_format:  # compressed formats find out when they are asked
            made.has_canonical_format = True
        return made

    # --- what is known without asking: a matrix is described once, and again when its parts were set -----------------

    #: How many elements are stored; None if that may have changed. Any use of the matrix may bring duplicates together.
    _nnz: int | None = None

    def _take_in(self, attributes: dict[str, wire.Value]) -> None:
        shape, dtype, nnz = (attributes.get(name) for name in ("shape", "dtype", "nnz"))
        extents = shape.items if isinstance(shape, wire.Tuple) else ()
        known = tuple([one for one in extents if type(one) is int and one >= 0])
        if not known or len(known) != len(extents) or not isinstance(dtype, wire.DType):
            raise ProtocolError(f"The executor described a sparse matrix of shape {extents!a}, which none can have.")
        object.__setattr__(self, "_known", SparseLayout(known, text_to_dtype(dtype.descr)))
        object.__setattr__(self, "_nnz", nnz if type(nnz) is int else None)

    def _read(self, name: str) -> Any:
        known = self._known
        if known is not None and name == "T":
            return self.transpose()
        if known is None or name not in _DESCRIBED:
            return super()._read(name)
        if name == "ndim":
            return len(known.shape)
        if name != "nnz":
            return getattr(known, name)
        if self._nnz is None:
            object.__setattr__(self, "_nnz", super()._read("nnz"))
        return self._nnz

    def __setattr__(self, name: str, value: object) -> None:
        if not name.startswith("_"):
            object.__setattr__(self, "_known", None)
        super().__setattr__(name, value)

    def _wire_value(self) -> wire.Ref:
        object.__setattr__(self, "_nnz", None)
        return super()._wire_value()

    @classmethod
    def _format(cls) -> str:
        return cls._qualname.rpartition(".")[2][:3]

    def _key(self, key: Index | ScipyMatrix) -> Any:
        """Let a mask that is SciPy's select the elements where it is true; no other matrix of SciPy is an index."""
        if not _is_scipys(key):
            return key
        if key.ndim == 2 and key.dtype.kind == "b":
            return key.nonzero()
        raise IndexError("invalid index")

    def get(self, stream: StreamLike = None) -> Any:
        """Return the matrix as SciPy's of the same name. Some round trips.

        Raises
        ------
        ModuleNotFoundError
            If there is no SciPy here: the notebook needs it for nothing else.
        """
        made = getattr(_scipy_sparse(), self._qualname.rpartition(".")[2])
        form, shape = self._format(), tuple(self.shape)
        parts = [getattr(self, name).get(stream) for name in _PARTS[form]]
        if form == "coo":
            parts = [parts[0], tuple(parts[1:] if len(shape) == 2 else parts[2:])]
        host = made(tuple(parts), shape=shape)
        if form != "dia":
            host.has_canonical_format = bool(self.has_canonical_format)
        return host

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel as SciPy's matrix."""
        return self._remade(self.get())


class spmatrix(_Sparse):  # noqa: N801 (CuPy's name)
    """Base of ``csr_matrix`` and its like."""

    _qualname = "cupyx.scipy.sparse.spmatrix"

    def set_shape(self, shape: ShapeLike) -> None:
        """Give the matrix another shape, in place."""
        self.shape = shape


class sparray(_Sparse):  # noqa: N801 (CuPy's name)
    """Base of ``csr_array`` and its like."""

    _qualname = "cupyx.scipy.sparse.sparray"


def _is_sound(host: Any, kwargs: dict[str, object]) -> bool:
    """Tell whether the parts of SciPy's matrix surely make one of CuPy's."""
    return (
        host.format in ("csr", "csc")
        and host.ndim == 2
        and host.dtype.char in "?fdFD"
        and kwargs == {"shape": host.shape}
        and host.indptr[0] == 0
        and host.indptr[-1] == host.data.size == host.indices.size
    )


def issparse(x: object) -> bool:
    """Tell whether ``x`` is a sparse matrix or array of the GPU; SciPy's are none."""
    return isinstance(x, _Sparse)


def isspmatrix(x: object) -> bool:
    """Tell whether ``x`` is a sparse matrix of the GPU, and no sparse array."""
    return isinstance(x, spmatrix)


def _is_of_format(form: str) -> Any:
    def is_of_format(x: object) -> bool:
        return isinstance(x, spmatrix) and isinstance(x, remote_class(f"cupyx.scipy.sparse.{form}_matrix"))

    is_of_format.__name__ = is_of_format.__qualname__ = f"isspmatrix_{form}"
    is_of_format.__doc__ = f"Tell whether ``x`` is a sparse matrix of the GPU in {form.upper()} format."
    return is_of_format


isspmatrix_csr, isspmatrix_csc, isspmatrix_coo, isspmatrix_dia = map(_is_of_format, ("csr", "csc", "coo", "dia"))


def _scipy_sparse() -> ModuleType:
    try:
        return importlib.import_module("scipy.sparse")
    except ModuleNotFoundError as error:
        error.add_note("A sparse matrix comes to the notebook as SciPy's: run `pip install scipy`.")
        raise


def _is_scipys(value: object) -> TypeGuard[ScipyMatrix]:
    loaded = sys.modules.get("scipy.sparse")  # nobody has a matrix of a module that was never imported
    return loaded is not None and not isinstance(value, (np.ndarray, tuple)) and bool(loaded.issparse(value))
