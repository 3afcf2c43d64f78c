"""What a group does with sparse matrices in CSR, CSC and COO format, of which the ranks' may differ in size.

So there are two exchanges each time: of how large they are, which is waited for, then of the arrays they are made of.
What a call refuses it refuses after it was begun, so it is counted by all ranks alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from gpu_backend.opstream.layout import DType
from kernelproxy.array.remote_array import ndarray
from kernelproxy.calls.argument_types import HostArray
from kernelproxy.calls.array_core import device_of
from kernelproxy.namespace.creation import asarray, ascontiguousarray
from kernelproxy.namespace.names import make
from kernelproxy.namespace.process_group.dense import room
from kernelproxy.namespace.process_group.exchange import Call, Exchange
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
    """How large a matrix is, its types and its format: all that has to be known before its arrays come."""

    rows: int
    columns: int
    lengths: tuple[int, int, int]
    dtypes: tuple[str, str, str]
    format: str

    @classmethod
    def of(cls, matrix: Matrix, parts: Sequence[ndarray]) -> _Size:
        """Return that of a matrix that is made of ``parts``."""
        rows, columns = matrix.shape
        first, second, third = parts
        lengths = (first.size, second.size, third.size)
        return cls(rows, columns, lengths, (first.dtype.char, second.dtype.char, third.dtype.char), matrix.format)

    def numbers(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Return it as it is sent."""
        of = list(_PARTS).index(self.format)
        return np.array([self.rows, self.columns, *self.lengths, *map(ord, self.dtypes), of], "q")

    @classmethod
    def read(cls, numbers: HostArray) -> _Size:
        """Return what was sent as ``numbers``."""
        rows, columns, *told = (int(one) for one in numbers)
        lengths, (first, second, third), of = (told[0], told[1], told[2]), map(chr, told[3:6]), told[6]
        return cls(rows, columns, lengths, (first, second, third), list(_PARTS)[of])


_NUMBERS = 9


def is_sparse(given: object) -> bool:
    """Tell whether what a group is given is a sparse matrix, or several."""
    return issparse(given[0]) if isinstance(given, (list, tuple)) and given else issparse(given)


def send(exchange: Exchange, matrix: Matrix, peer: int) -> None:
    """Send a matrix to one rank."""
    _between(exchange.of_two(to=peer), {peer: matrix}, {})


def receive(exchange: Exchange, out: Matrix, peer: int) -> None:
    """Have ``out`` become what one rank sends."""
    _become(out, *_between(exchange.of_two(since=peer), {}, {peer: out})[peer])


def send_and_receive(exchange: Exchange, matrix: Matrix, out: Matrix, peer: int) -> None:
    """Do both, which the other rank does as well."""
    if peer == exchange.rank:
        _assign(out, matrix)
    else:
        _become(out, *_between(exchange.of_two(peer, peer), {peer: matrix}, {peer: out})[peer])


def broadcast(exchange: Exchange, matrix: Matrix, root: int) -> None:
    """Have the matrices of all others become that of ``root``."""
    _broadcast(exchange.of_all(), matrix, root)


def _broadcast(call: Call, matrix: Matrix, root: int) -> None:
    _check(call, matrix)
    if call.whole.rank == root:
        _between(call, dict.fromkeys(call.whole.others, matrix), {})
    else:
        _become(matrix, *_between(call, {}, {root: matrix})[root])


def reduce(exchange: Exchange, matrix: Matrix, out: Matrix, op: str, root: int) -> None:
    """Have ``out`` of ``root`` become the sum or the product of all ranks' matrices."""
    _reduce(exchange.of_all(), matrix, out, op, root)


def _reduce(call: Call, matrix: Matrix, out: Matrix, op: str, root: int) -> None:
    if op not in ("sum", "prod"):
        raise ValueError("Sparse matrix only supports sum/prod reduction")
    _check(call, matrix)
    if call.whole.rank != root:
        _between(call, {root: matrix}, {})
        return
    if _format(matrix) != _format(out):
        raise ValueError("in_array and out_array must be the same format")
    result = matrix
    for _, (size, parts) in sorted(_between(call, {}, dict.fromkeys(call.whole.others, matrix)).items()):
        one = _made(type(matrix), size, parts)
        result = result + one if op == "sum" else result * one
    _assign(out, result)


def all_reduce(exchange: Exchange, matrix: Matrix, out: Matrix, op: str) -> None:
    """Have ``out`` of all ranks become the sum or the product of their matrices."""
    call = exchange.of_all()
    _reduce(call, matrix, out, op, 0)
    _broadcast(call, out, 0)


def reduce_scatter(exchange: Exchange, matrices: Sequence[Matrix], out: Matrix, op: str) -> None:
    """Of a list of matrices on each rank, have each rank's ``out`` become the sum or product of those at its place."""
    call = exchange.of_all()
    if not isinstance(matrices, (list, tuple)):
        raise ValueError("in_array must be a list or a tuple of sparse matrices")
    totals = [_empty_like(one) for one in matrices]
    for one, total in zip(matrices, totals, strict=True):
        _reduce(call, one, total, op, 0)
    _scatter(call, totals, out, 0)


def scatter(exchange: Exchange, matrices: Sequence[Matrix], out: Matrix, root: int) -> None:
    """Have each rank's ``out`` become one of the matrices of ``root``."""
    _scatter(exchange.of_all(), matrices, out, root)


def _scatter(call: Call, matrices: Sequence[Matrix], out: Matrix, root: int) -> None:
    _check(call, out)
    if call.whole.rank == root:
        _between(call, {peer: matrices[peer] for peer in call.whole.others}, {})
        _assign(out, matrices[root])
    else:
        _become(out, *_between(call, {}, {root: out})[root])


def gather(exchange: Exchange, matrix: Matrix, out: list[Matrix], root: int) -> None:
    """Append all ranks' matrices to the list of ``root``."""
    call = exchange.of_all()
    _check(call, matrix)
    if exchange.rank != root:
        _between(call, {root: matrix}, {})
        return
    found = _between(call, {}, dict.fromkeys(exchange.others, matrix))
    out += [_one_of(found, rank, matrix) for rank in range(exchange.size)]


def all_gather(exchange: Exchange, matrix: Matrix, out: list[Matrix]) -> None:
    """Append all ranks' matrices to the list of each."""
    call, theirs = exchange.of_all(), dict.fromkeys(exchange.others, matrix)
    _check(call, matrix)
    found = _between(call, theirs, theirs)
    out += [_one_of(found, rank, matrix) for rank in range(exchange.size)]


def all_to_all(exchange: Exchange, matrices: Sequence[Matrix], out: list[Matrix]) -> None:
    """Send each rank one of the matrices, and append what each has sent to the list."""
    call = exchange.of_all()
    if len(matrices) != exchange.size:
        raise RuntimeError(f"all_to_all requires in_array to have {exchange.size} elements, found {len(matrices)}")
    own, others = matrices[exchange.rank], exchange.others
    _check(call, own)
    found = _between(call, {peer: matrices[peer] for peer in others}, dict.fromkeys(others, own))
    out += [_one_of(found, rank, own) for rank in range(exchange.size)]


_Found = dict[int, tuple[_Size, list[ndarray]]]


def _between(call: Call, matrices: Mapping[int, Matrix], like: Mapping[int, Matrix]) -> _Found:
    """Send matrices to others, and return what those ranks send that ``like`` has; each is to be of that format.

    Raises
    ------
    ValueError
        If one is of another format, or a matrix is not of the group's device.
    TypeError
        If a matrix is none of those that can be sent.
    """
    for matrix in (*matrices.values(), *like.values()):
        _check(call, matrix)
    parts = {peer: _parts(matrix) for peer, matrix in matrices.items()}
    told = {peer: [asarray(_Size.of(matrices[peer], made).numbers())] for peer, made in parts.items()}
    numbers = {peer: room(_NUMBERS, "q") for peer in like}
    call.exchange(told, {peer: [one] for peer, one in numbers.items()})
    sizes = {peer: _Size.read(one.get()) for peer, one in numbers.items()}
    coming = {peer: _rooms(size) for peer, size in sizes.items()}
    call.exchange(parts, coming)  # before a format is refused: the others wait for what is sent
    for peer, size in sizes.items():
        if size.format != _format(like[peer]):
            raise ValueError(
                f"Rank {peer} sent a matrix in {size.format.upper()} format, and here one in "
                f"{like[peer].format.upper()} is expected: all ranks give matrices of one format."
            )
    return {peer: (sizes[peer], coming[peer]) for peer in like}


def _one_of(found: _Found, rank: int, own: Matrix) -> Any:
    return _made(type(own), *found[rank]) if rank in found else own.copy()


def _format(matrix: Matrix) -> str:
    if issparse(matrix) and matrix.format in _PARTS:
        return str(matrix.format)
    raise TypeError(_NOT_THIS)


def _check(call: Call, matrix: Matrix) -> None:
    """Refuse what is no matrix that can pass, or is not of the group's device, which is the current one here."""
    _format(matrix)
    client = call.whole.client
    device = client.number if client.members else client.streams.device
    if matrix.data._client is not client or device_of(matrix.data) != device:
        raise ValueError(f"The process group was made on device {device}, and the matrix is on another.")


def _parts(matrix: Matrix) -> list[ndarray]:
    """Return what a matrix is made of, each without gaps: so it passes."""
    kind = _format(matrix)
    if kind == "coo":
        matrix.sum_duplicates()
    return [ascontiguousarray(getattr(matrix, name)) for name in _PARTS[kind]]


def _rooms(size: _Size) -> list[ndarray]:
    return [room(*one) for one in zip(size.lengths, size.dtypes, strict=True)]


def _made(cls: Callable[..., Any], size: _Size, parts: Sequence[ndarray]) -> Any:
    """Return the matrix of these parts."""
    first, second, third = parts
    given = (first, (second, third)) if size.format == "coo" else (first, second, third)
    return cls(given, shape=(size.rows, size.columns))


def _become(out: Matrix, size: _Size, parts: Sequence[ndarray]) -> None:
    out._take_over(_made(type(out), size, parts))


def _assign(out: Matrix, matrix: Matrix) -> None:
    """Have ``out`` become a copy of a matrix of our own."""
    kind = _format(out)
    out._take_over(matrix.asformat(kind).copy())


def _empty_like(matrix: Matrix) -> Any:
    return make(matrix._qualname)((0, 0), dtype=matrix.dtype)
