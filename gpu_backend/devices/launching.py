"""Launches, which a thread makes while many follow each other.

A driver takes about as long for a launch as an executor needs to find the next one. So while ops follow each other
whose ways are known, they are only written down, and ``csrc/launching.c`` gives them to the driver beside the op loop,
in the order in which they came: kernels several at a time, as a graph, if as many wait. Whoever has anything else to do
with the device waits until all are with the driver. A kernel that comes again and again by itself, left to the thread
or launched at once, is a graph of one: the driver takes half as long for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

__all__ = ["MOST_PARAMETERS", "Driver", "Kernel", "Launcher"]

#: So many parameters a kernel may have that is left to a thread.
MOST_PARAMETERS = 256


class Kernel(NamedTuple):
    """A kernel that is launched with parameters from a common memory.

    Its own lie from the byte ``first`` up to ``end``, each at one of ``places``, counted from the memory's beginning.
    """

    function: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    first: int
    end: int
    places: tuple[int, ...]


class Launcher(Protocol):
    """Launches on the default stream. Called from the op loop only, but for `wait`."""

    #: Whether launches may be left to the thread at all.
    may_leave: bool

    @property
    def left(self) -> int:
        """How many launches were left to the thread so far."""

    @property
    def together(self) -> int:
        """How many of them were given to the driver together, as a graph."""

    def begin(self) -> None:
        """Leave launches to the thread from now on, if that may be: until `settle` or `hold`.

        Whatever else is given to the device in between waits first.
        """

    def kernels(self, steps: tuple[Kernel, ...], content: bytearray) -> Callable[[], None]:
        """Return what launches ``steps``, one after the other, with the parameters that ``content`` has by then.

        Raises ValueError if one has too many parameters, or one that does not lie there.
        """

    def tables(
        self, kernels: tuple[tuple[int, int], ...], most_blocks: int, threads: int, per_thread: int, one_block: int, /
    ) -> Callable[[bytearray, int, int], None]:
        """Return what launches the first so many instructions of a table, of which the largest has so many elements.

        See `segments` for what a table is, and ``segment_source`` for the kernels.

        Parameters
        ----------
        kernels
            Each with how many instructions its one parameter, a table, has room for, the smallest first.
        most_blocks, threads
            Most blocks of a launch, and the threads of each.
        per_thread
            Elements for each thread where there is more than one block.
        one_block
            For so many elements one block is enough.
        """

    def products(
        self, gemm: int, set_stream: int, handle_of: Callable[[], int], one: int, zero: int, how: tuple[int, ...], /
    ) -> Callable[[int, int, int, int], None]:
        """Return what multiplies a matrix at one address by that at the next, into that at the third.

        The fourth, of memory for the call itself, is not used.

        Parameters
        ----------
        gemm, set_stream
            Where ``cublasGemmEx`` and ``cublasSetStream_v2`` are.
        handle_of
            Tells the library's handle at each call.
        one, zero
            Where these numbers stand, in the type of the elements.
        how
            ``transa, transb, m, n, k``, the type, ``lda, ldb, ldc``, how it is computed, and the algorithm.
        """

    def reader(self, kernel: int, into: int, mark: int, /) -> Callable[[int, int], bytes | None]:
        """Return what returns so many bytes from an address on, once all launches are done that were made before.

        Where it returns None a copy has to bring them: it would take long, or it failed, or others may want the device,
        whose kernels a copy does not wait for.

        Parameters
        ----------
        kernel
            Its parameters are words: the address, ``into``, how many bytes, ``mark``, and a number. It has one block,
            copies the bytes to ``into``, and writes the number to ``mark`` when the host can see them.
        into, mark
            Memory of the host that the device writes: room for what is read, and one word right behind that.
        """

    def wait(self) -> None:
        """Wait until all launches are with the driver. What it said of them `settle` tells."""

    def hold(self) -> None:
        """Have launches be made at once from now on, and wait as `wait`."""

    def settle(self) -> None:
        """Do as `hold`, and raise if something was refused that the thread asked for: then, and each time from then on.

        Nothing is launched any more behind what was refused.
        """

    def watch(self, modules: type) -> bool:
        """Launch kernels as graphs from now on, and know none of them any more once an object of ``modules`` has ended.

        Such objects unload kernels as they end; it is not served by every type, and then False is returned. Raises
        TypeError if another type is watched in this process already.
        """


class Driver(NamedTuple):
    """Where the functions of the driver are that a launcher calls, and the context that its thread enters."""

    launch_kernel: int
    launch_cooperative: int
    #: ``cuCtxSetCurrent``.
    enter: int
    #: ``cuGraphCreate``, ``cuGraphAddKernelNode`` (the first of its versions, as all of these),
    #: ``cuGraphInstantiateWithFlags``, ``cuGraphUpload``, ``cuGraphExecKernelNodeSetParams``, ``cuGraphLaunch``,
    #: ``cuGraphExecDestroy`` and ``cuGraphDestroy``. One that is missing is 0: then nobody is to `Launcher.watch`.
    graphs: tuple[int, ...]
    context: int
