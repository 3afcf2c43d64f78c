"""``cupyx.distributed.init_process_group`` and the communicator that it gives: CuPy's names, checks and words."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeAlias

from kernelproxy.array.remote_array import ndarray
from kernelproxy.calls.argument_types import StreamLike
from kernelproxy.calls.array_core import device_of
from kernelproxy.calls.brought import on_device
from kernelproxy.calls.on_stream import on_stream
from kernelproxy.client import current
from kernelproxy.namespace.process_group import dense, sparse
from kernelproxy.namespace.process_group.ending import finish, finish_at_end
from kernelproxy.namespace.process_group.exchange import Exchange
from kernelproxy.namespace.process_group.meeting import channels_to, patiently

__all__ = ["NCCLBackend", "init_process_group"]

#: What is sent, or where what comes is put: an array, a sparse matrix or a list of these.
Operand: TypeAlias = "ndarray | sparse.Matrix | Sequence[sparse.Matrix]"
_HOST, _PORT = "127.0.0.1", 13333
#: Of which dtypes arrays may be, by their letters: those that NCCL knows, and complex ones.
_DTYPES = frozenset("bBiIlLqQefdFD")


def init_process_group(
    n_devices: int,
    rank: int,
    *,
    backend: str = "nccl",
    host: str | None = None,
    port: int | None = None,
    use_mpi: bool = False,
) -> NCCLBackend:
    """Make this process one of a group of ``n_devices``, on the current device; return when all have come.

    All of them are the same user's, wherever they run. ``host`` and ``port``, or the environment's
    ``CUPYX_DISTRIBUTED_HOST`` and ``CUPYX_DISTRIBUTED_PORT``, are the group's name and no more: the pool is where they
    meet, with ``use_mpi`` as well.

    Raises
    ------
    ValueError
        If there is no such rank, or no such ``backend``: the one there is goes by the name of "nccl".
    TimeoutError
        If others did not come, and the message says who; or if one went away when all had come.
    PoolRefusal
        If others say something else of the group.
    """
    if n_devices <= 0:
        raise ValueError(f"Invalid number of devices {n_devices}")
    if not 0 <= rank < n_devices:
        raise ValueError(f"Invalid number of rank {rank} {n_devices}")
    if backend != "nccl":
        raise ValueError(f"{backend} is not supported")
    host = os.environ.get("CUPYX_DISTRIBUTED_HOST", _HOST) if host is None else host
    port = int(os.environ.get("CUPYX_DISTRIBUTED_PORT", _PORT)) if port is None else port
    return NCCLBackend(n_devices, rank, host, port, use_mpi)


class _Given(NamedTuple):
    """What a method was given: arrays of the group's device, or sparse matrices and lists of such: first and last."""

    arrays: list[ndarray]
    matrices: tuple[Any, Any] | None


class NCCLBackend:
    """One rank of a group of processes. The name is CuPy's; what passes goes from executor to executor, without NCCL.

    All ranks call the same methods in the same order. But for `barrier`, and for sparse matrices, nothing is waited
    for; what failed on any rank is raised on all that it concerns, where they wait for something the next time.
    ``stream`` is the stream to do it on, the current one by default.
    """

    __module__ = "cupyx.distributed._nccl_comm"

    def __init__(self, n_devices: int, rank: int, host: str = _HOST, port: int = _PORT, use_mpi: bool = False) -> None:
        _ = current().session  # where devices come from is known once it is there
        client = current()
        device = client.number if client.members else client.streams.device
        name = f"{host}:{port}"
        channels = channels_to(client, name, n_devices, rank)
        self._begin(Exchange(client, rank, channels), device)
        with patiently(client, name):
            self.barrier()  # or who has ended by then is not found by those who look for its channel late
        finish_at_end(self._exchange)

    def _begin(self, exchange: Exchange, device: int) -> None:
        self._exchange, self._device = exchange, device
        self._n_devices, self.rank = exchange.size, exchange.rank

    # --- collectives --------------------------------------------------------------------------------------------------

    def all_reduce(self, in_array: Operand, out_array: Operand, op: str = "sum", stream: StreamLike = None) -> None:
        """Put the arrays of all ranks together into that of each, by "sum", "prod", "min" or "max"; complex: "sum"."""
        with self._doing(stream, in_array, out_array) as given:
            if given.matrices:
                sparse.all_reduce(self._exchange, *given.matrices, op)
            else:
                one, other = given.arrays
                self._check_contiguous(one, other)
                own, out = self._flat_pair(one, other)
                dense.all_reduce(self._exchange, own, out, self._op(op, one))

    def reduce(
        self, in_array: Operand, out_array: Operand, root: int = 0, op: str = "sum", stream: StreamLike = None
    ) -> None:
        """Put the arrays of all ranks together into that of ``root``."""
        self._check_peer(root)
        is_root = self.rank == root
        with self._doing(stream, in_array, out_array) as given:
            if given.matrices:
                sparse.reduce(self._exchange, *given.matrices, op, root)
            else:
                one, other = given.arrays
                self._check_contiguous(one, *([other] if is_root else []))
                op = self._op(op, one)
                own, out = self._flat_pair(one, other if is_root else one)
                dense.reduce(self._exchange, own, out, op, root)

    def broadcast(self, in_out_array: Operand, root: int = 0, stream: StreamLike = None) -> None:
        """Have the arrays of all ranks become as that of ``root``."""
        self._check_peer(root)
        with self._doing(stream, in_out_array) as given:
            if given.matrices:
                sparse.broadcast(self._exchange, given.matrices[0], root)
            else:
                (one,) = given.arrays
                self._check_contiguous(one)
                dense.broadcast(self._exchange, self._flat(one), root)

    def reduce_scatter(
        self, in_array: Operand, out_array: Operand, count: int, op: str = "sum", stream: StreamLike = None
    ) -> None:
        """Put the arrays of all ranks together, ``count`` elements for each rank, one rank's after the other's."""
        with self._doing(stream, in_array, out_array) as given:
            if given.matrices:
                sparse.reduce_scatter(self._exchange, *given.matrices, op)
            else:
                one, other = given.arrays
                self._check_contiguous(one, other)
                own = self._flat(one, self._n_devices * count)
                out = self._flat(other, count, one)
                dense.reduce_scatter(self._exchange, own, out, self._op(op, one))

    def all_gather(self, in_array: Operand, out_array: Operand, count: int, stream: StreamLike = None) -> None:
        """Put ``count`` elements of each rank behind each other, on all ranks."""
        with self._doing(stream, in_array, out_array) as given:
            if given.matrices:
                sparse.all_gather(self._exchange, *given.matrices)
            else:
                one, other = given.arrays
                self._check_contiguous(one, other)
                parts = self._parts(other, count, one)
                dense.all_gather(self._exchange, self._flat(one, count), parts)

    def scatter(self, in_array: Operand, out_array: Operand, root: int = 0, stream: StreamLike = None) -> None:
        """Give each rank one of the elements of ``root``'s array along its first axis."""
        self._check_peer(root)
        with self._doing(stream, in_array, out_array) as given:
            if given.matrices:
                sparse.scatter(self._exchange, *given.matrices, root)
            else:
                one, other = given.arrays
                self._check_first_axis("scatter", "in_array", one)
                self._check_contiguous(one, other)
                parts = self._parts(one) if self.rank == root else []
                dense.scatter(self._exchange, parts, self._flat(other), root)

    def gather(self, in_array: Operand, out_array: Operand, root: int = 0, stream: StreamLike = None) -> None:
        """Put each rank's array into one of the elements of ``root``'s along its first axis."""
        self._check_peer(root)
        with self._doing(stream, in_array, out_array) as given:
            if given.matrices:
                sparse.gather(self._exchange, *given.matrices, root)
            else:
                one, other = given.arrays
                self._check_first_axis("gather", "out_array", other)
                self._check_contiguous(one, other)
                parts = self._parts(other) if self.rank == root else []
                dense.gather(self._exchange, self._flat(one), parts, root)

    def all_to_all(self, in_array: Operand, out_array: Operand, stream: StreamLike = None) -> None:
        """Give each rank one of the elements of this one's array along its first axis, and get one from each."""
        with self._doing(stream, in_array, out_array) as given:
            if given.matrices:
                sparse.all_to_all(self._exchange, *given.matrices)
            else:
                one, other = given.arrays
                self._check_first_axis("all_to_all", "in_array", one)
                self._check_first_axis("all_to_all", "out_array", other)
                self._check_contiguous(one, other)
                dense.all_to_all(self._exchange, self._parts(one), self._parts(other))

    # --- of two -------------------------------------------------------------------------------------------------------

    def send(self, array: Operand, peer: int, stream: StreamLike = None) -> None:
        """Send an array to one rank, which calls `recv`."""
        self._check_peer(peer, is_another=True)
        with self._doing(stream, array) as given:
            if given.matrices:
                sparse.send(self._exchange, given.matrices[0], peer)
            else:
                (one,) = given.arrays
                self._check_contiguous(one)
                self._exchange.send([self._flat(one)], peer)

    def recv(self, out_array: Operand, peer: int, stream: StreamLike = None) -> None:
        """Put what one rank sends, by `send`, into an array."""
        self._check_peer(peer, is_another=True)
        with self._doing(stream, out_array) as given:
            if given.matrices:
                sparse.receive(self._exchange, given.matrices[0], peer)
            else:
                (one,) = given.arrays
                self._check_contiguous(one)
                self._exchange.receive([self._flat(one)], peer)

    def send_recv(self, in_array: Operand, out_array: Operand, peer: int, stream: StreamLike = None) -> None:
        """Send an array to one rank and put what it sends into another; it calls this as well."""
        self._check_peer(peer)
        with self._doing(stream, in_array, out_array) as given:
            if given.matrices:
                sparse.send_and_receive(self._exchange, *given.matrices, peer)
                return
            one, other = given.arrays
            self._check_contiguous(one, other)
            if peer == self.rank:
                dense.copy(*self._flat_pair(one, other))
            else:
                self._exchange.send_and_receive([self._flat(one)], [self._flat(other)], peer)

    # --- waiting ------------------------------------------------------------------------------------------------------

    def barrier(self) -> None:
        """Wait until all ranks have come here, and have done all that was asked of them before."""
        with self._doing(None):
            word = dense.room(1, "u1")
            dense.all_gather(self._exchange, word, [dense.room(1, "u1") for _ in range(self._n_devices)])
            self._exchange.client.session.synchronize()

    def stop(self) -> None:
        """Let what was asked for be done, for some seconds: others wait for it. A process that ends does so as well."""
        finish(self._exchange)

    # --- what is given ------------------------------------------------------------------------------------------------

    @contextmanager
    def _doing(self, stream: StreamLike, *given: Operand) -> Iterator[_Given]:
        """Have what is recorded in the block run on ``stream``, on our device; tell what is given."""
        self._exchange.check()
        is_sparse = bool(given) and sparse.is_sparse(given[0])
        arrays = [] if is_sparse else [self._here(one) for one in given]
        client = self._exchange.client
        with on_device(client, self._device), on_stream(client, stream):
            yield _Given(arrays, (given[0], given[-1]) if is_sparse else None)

    def _here(self, array: object) -> ndarray:
        if not isinstance(array, ndarray):
            raise TypeError(f"A process group takes arrays of its device, and not {type(array).__name__}.")
        if array._client is not self._exchange.client or device_of(array) != self._device:
            raise ValueError(f"The process group was made on device {self._device}, and the array is on another.")
        return array

    @staticmethod
    def _check_contiguous(*arrays: ndarray) -> None:
        if not all(one.flags.c_contiguous or one.flags.f_contiguous for one in arrays):
            raise RuntimeError("NCCL requires arrays to be either c- or f-contiguous")

    def _check_first_axis(self, what: str, which: str, array: ndarray) -> None:
        if not array.shape or array.shape[0] != self._n_devices:
            wanted = f"{what} requires {which} to have {self._n_devices} elements in its first dimension"
            raise RuntimeError(f"{wanted}, found {array.shape}")
        if not array.flags.c_contiguous:  # its elements along the first axis lie in no row
            raise RuntimeError(f"{what} requires {which} to be c-contiguous")

    def _check_peer(self, peer: int, is_another: bool = False) -> None:
        if not 0 <= peer < self._n_devices:
            raise ValueError(f"There is no rank {peer} in a group of {self._n_devices}.")
        if is_another and peer == self.rank:
            raise ValueError(f"Rank {peer} cannot send to itself, or receive from itself, but by send_recv.")

    @staticmethod
    def _op(op: str, array: ndarray) -> str:
        if op not in dense.OPERATIONS:
            raise RuntimeError(f"Unknown op {op} for NCCL")
        if array.dtype.char in "FD" and op != "sum":
            raise ValueError("Only nccl.SUM is supported for complex arrays")
        return op

    @staticmethod
    def _flat(array: ndarray, count: int | None = None, like: ndarray | None = None, first: int = 0) -> Any:
        """Return ``count`` elements of ``array``, all by default; of the dtype of ``like``, where that is given."""
        dtype = (array if like is None else like).dtype
        if dtype.char not in _DTYPES:
            raise TypeError(f"Unknown dtype {dtype} for NCCL")
        return dense.flat(array, dtype, array.size if count is None else count, first)

    def _flat_pair(self, in_array: ndarray, out_array: ndarray) -> tuple[Any, Any]:
        return self._flat(in_array), self._flat(out_array, in_array.size, in_array)

    def _parts(self, array: ndarray, count: int | None = None, like: ndarray | None = None) -> Sequence[Any]:
        """Return ``count`` elements for each rank, of what there is by default."""
        each = array.size // self._n_devices if count is None else count
        return [self._flat(array, each, like, rank * each) for rank in range(self._n_devices)]
