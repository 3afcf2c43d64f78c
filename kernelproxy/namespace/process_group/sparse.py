"""What a group does with sparse matrices in CSR, CSC and COO format, of which the ranks' may differ in size.

So there are two exchanges each time: of how large they are, which is waited for, then of the arrays they are made of.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from gpu_backend.opstream.layout import DType
from kernelproxy.array.remote_array import ndarray
from kernelproxy.calls.argument_types import HostArray
from kernelproxy.namespace.creation import asarray
from kernelproxy.namespace.names import make
from kernelproxy.namespace.process_group.dense import room
from kernelproxy.namespace.process_group.exchange import Exchange
from kernelproxy.namespace.sparse import issparse

__all__ = [
    "all_gather", "all_reduce", "all_to_all", "broadcast", "gather", "is_sparse", "receive", "reduce",
    "reduce_scatter", "scatter", "send", "send_and_receive",
]  # fmt: skip

#: What a matrix of each format is made of.
_PARTS = {"csr": ("data", "indices", "indptr"), "csc": ("data", "indices", "indptr"), "coo": ("data", "row", "col")}
_NOT_THIS = "NCCL is not supported for this type of sparse matrix"


class Matrix(Protocol):
    """A sparse matrix or array of the GPU."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def format(self) -> str: ...
    @property
    def dtype(self) -> DType: ...
    def asformat(self, format: str) -> Any: ...
    def copy(self) -> Any: ...
    def __getattr__(self, name: str) -> Any: ...


class _Size(NamedTuple):
    """How large a matrix is, and its types: all that has to be known before its arrays come."""

    rows: int
    columns: int
    lengths: tuple[int, int, int]
    dtypes: tuple[str, str, str]

    @classmethod
    def of(cls, matrix: Matrix, parts: Sequence[ndarray]) -> _Size:
        """Return that of a matrix that is made of ``parts``."""
        rows, columns = matrix.shape
        first, second, third = parts
        lengths = (first.size, second.size, third.size)
        return cls(rows, columns, lengths, (first.dtype.char, second.dtype.char, third.dtype.char))

    def numbers(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Return it as it is sent."""
        return np.array([self.rows, self.columns, *self.lengths, *map(ord, self.dtypes)], "q")

    @classmethod
    def read(cls, numbers: HostArray) -> _Size:
        """Return what was sent as ``numbers``."""
        told = [int(one) for one in numbers]
        first, second, third = told[5:]
        return cls(told[0], told[1], (told[2], told[3], told[4]), (chr(first), chr(second), chr(third)))


_NUMBERS = 8


def is_sparse(given: object) -> bool:
    """Tell whether what a group is given is a sparse matrix, or several."""
    return issparse(given[0]) if isinstance(given, (list, tuple)) and given else issparse(given)


def send(exchange: Exchange, matrix: Matrix, peer: int) -> None:
    """Send a matrix to one rank."""
    parts = _parts(matrix)
    exchange.send([asarray(_Size.of(matrix, parts).numbers())], peer)
    exchange.send(parts, peer)


def receive(exchange: Exchange, out: Matrix, peer: int) -> None:
    """Have ``out`` become what one rank sends."""
    kind, numbers = _format(out), room(_NUMBERS, "q")
    exchange.receive([numbers], peer)
    size = _Size.read(numbers.get())
    parts = _rooms(size)
    exchange.receive(parts, peer)
    _become(out, kind, size, parts)


def send_and_receive(exchange: Exchange, matrix: Matrix, out: Matrix, peer: int) -> None:
    """Do both, which the other rank does as well."""
    if peer == exchange.rank:
        _assign(out, matrix)
        return
    kind, parts, numbers = _format(out), _parts(matrix), room(_NUMBERS, "q")
    exchange.send_and_receive([asarray(_Size.of(matrix, parts).numbers())], [numbers], peer)
    size = _Size.read(numbers.get())
    coming = _rooms(size)
    exchange.send_and_receive(parts, coming, peer)
    _become(out, kind, size, coming)


def broadcast(exchange: Exchange, matrix: Matrix, root: int) -> None:
    """Have the matrices of all others become that of ``root``."""
    kind = _format(matrix)
    if exchange.rank == root:
        _among_all(exchange, dict.fromkeys(exchange.others, matrix), ())
    else:
        _become(matrix, kind, *_among_all(exchange, {}, (root,))[root])


def reduce(exchange: Exchange, matrix: Matrix, out: Matrix, op: str, root: int) -> None:
    """Have ``out`` of ``root`` become the sum or the product of all ranks' matrices."""
    if op not in ("sum", "prod"):
        raise ValueError("Sparse matrix only supports sum/prod reduction")
    kind = _format(matrix)
    if exchange.rank != root:
        _among_all(exchange, {root: matrix}, ())
        return
    if kind != _format(out):
        raise ValueError("in_array and out_array must be the same format")
    result = matrix
    for _, (size, parts) in sorted(_among_all(exchange, {}, exchange.others).items()):
        one = _made(type(matrix), kind, size, parts)
        result = result + one if op == "sum" else result * one
    _assign(out, result)


def all_reduce(exchange: Exchange, matrix: Matrix, out: Matrix, op: str) -> None:
    """Have ``out`` of all ranks become the sum or the product of their matrices."""
    reduce(exchange, matrix, out, op, 0)
    broadcast(exchange, out, 0)


def reduce_scatter(exchange: Exchange, matrices: Sequence[Matrix], out: Matrix, op: str) -> None:
    """Of a list of matrices on each rank, have each rank's ``out`` become the sum or product of those at its place."""
    if not isinstance(matrices, (list, tuple)):
        raise ValueError("in_array must be a list or a tuple of sparse matrices")
    totals = [_empty_like(one) for one in matrices]
    for one, total in zip(matrices, totals, strict=True):
        reduce(exchange, one, total, op, 0)
    scatter(exchange, totals, out, 0)


def scatter(exchange: Exchange, matrices: Sequence[Matrix], out: Matrix, root: int) -> None:
    """Have each rank's ``out`` become one of the matrices of ``root``."""
    kind = _format(out)
    if exchange.rank == root:
        _among_all(exchange, {peer: matrices[peer] for peer in exchange.others}, ())
        _assign(out, matrices[root])
    else:
        _become(out, kind, *_among_all(exchange, {}, (root,))[root])


def gather(exchange: Exchange, matrix: Matrix, out: list[Matrix], root: int) -> None:
    """Append all ranks' matrices to the list of ``root``."""
    kind = _format(matrix)
    if exchange.rank != root:
        _among_all(exchange, {root: matrix}, ())
        return
    found = _among_all(exchange, {}, exchange.others)
    out += [_one_of(found, rank, matrix, kind) for rank in range(exchange.size)]


def all_gather(exchange: Exchange, matrix: Matrix, out: list[Matrix]) -> None:
    """Append all ranks' matrices to the list of each."""
    kind, others = _format(matrix), exchange.others
    found = _among_all(exchange, dict.fromkeys(others, matrix), others)
    out += [_one_of(found, rank, matrix, kind) for rank in range(exchange.size)]


def all_to_all(exchange: Exchange, matrices: Sequence[Matrix], out: list[Matrix]) -> None:
    """Send each rank one of the matrices, and append what each has sent to the list."""
    if len(matrices) != exchange.size:
        raise RuntimeError(f"all_to_all requires in_array to have {exchange.size} elements, found {len(matrices)}")
    own, others = matrices[exchange.rank], exchange.others
    kind = _format(own)
    found = _among_all(exchange, {peer: matrices[peer] for peer in others}, others)
    out += [_one_of(found, rank, own, kind) for rank in range(exchange.size)]


_Found = dict[int, tuple[_Size, list[ndarray]]]


def _among_all(exchange: Exchange, matrices: Mapping[int, Matrix], since: Sequence[int]) -> _Found:
    """Send matrices to others, and return what the ranks ``since`` send: all ranks do this together."""
    parts = {peer: _parts(matrix) for peer, matrix in matrices.items()}
    told = {peer: [asarray(_Size.of(matrices[peer], made).numbers())] for peer, made in parts.items()}
    numbers = {peer: room(_NUMBERS, "q") for peer in since}
    exchange.among_all(told, {peer: [one] for peer, one in numbers.items()})
    sizes = {peer: _Size.read(one.get()) for peer, one in numbers.items()}
    coming = {peer: _rooms(size) for peer, size in sizes.items()}
    exchange.among_all(parts, coming)
    return {peer: (sizes[peer], coming[peer]) for peer in since}


def _one_of(found: _Found, rank: int, own: Matrix, kind: str) -> Any:
    return _made(type(own), kind, *found[rank]) if rank in found else own.copy()


def _format(matrix: Matrix) -> str:
    if issparse(matrix) and matrix.format in _PARTS:
        return str(matrix.format)
    raise TypeError(_NOT_THIS)


def _parts(matrix: Matrix) -> list[ndarray]:
    kind = _format(matrix)
    if kind == "coo":
        matrix.sum_duplicates()
    return [getattr(matrix, name) for name in _PARTS[kind]]


def _rooms(size: _Size) -> list[ndarray]:
    return [room(*one) for one in zip(size.lengths, size.dtypes, strict=True)]


def _made(cls: Callable[..., Any], kind: str, size: _Size, parts: Sequence[ndarray]) -> Any:
    """Return the matrix of these parts."""
    first, second, third = parts
    given = (first, (second, third)) if kind == "coo" else (first, second, third)
    return cls(given, shape=(size.rows, size.columns))


def _become(out: Matrix, kind: str, size: _Size, parts: Sequence[ndarray]) -> None:
    out._take_over(_made(type(out), kind, size, parts))


def _assign(out: Matrix, matrix: Matrix) -> None:
    """Have ``out`` become a copy of a matrix of our own."""
    kind = _format(out)
    out._take_over(matrix.asformat(kind).copy())


def _empty_like(matrix: Matrix) -> Any:
    return make(matrix._qualname)((0, 0), dtype=matrix.dtype)
