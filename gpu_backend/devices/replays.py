"""The seam of replays: an op's launches, captured once and given to the device again without CuPy.

What CuPy launches for an op follows from how its operands lie and from its other arguments, never from where the
operands lie or what is in them: otherwise it would have to wait for the device, and such an op cannot be captured. So
the kernels that CuPy launched for an op once, with the addresses of other operands put where the first ones' were, do
the op again, to the same bits: they are CuPy's own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from gpu_backend.devices.segments import Kind
from gpu_backend.opstream.layout import DType, Layout

__all__ = ["ZEROS", "Copied", "Lying", "Made", "Number", "Patch", "Replay", "Replays", "Slot", "Unrepeatable"]

#: In place of the number of a block or an operand: zeros.
ZEROS = -1


class Unrepeatable(Exception):
    """An op cannot be captured. The message says why, in a few words."""


class Lying(NamedTuple):
    """An operand that is captured: an array that lies so, wherever that will be."""

    number: int
    layout: Layout


class Number(NamedTuple):
    """An operand that is captured: a number, whatever its value will be."""

    number: int
    #: A Python type; or the dtype of a scalar that has one of its own.
    kind: type | DType
    #: In which type it is handed to the kernel.
    dtype: DType


class Patch(NamedTuple):
    """Where in the parameters an address stands."""

    at: int
    #: Of which block; those behind the blocks are the operands.
    source: int
    displacement: int


class Slot(NamedTuple):
    """Where in the parameters a number stands, and in which type."""

    at: int
    number: int
    dtype: DType


class Made(NamedTuple):
    """Where a result lies: from the first byte of a block."""

    block: int
    layout: Layout


class Copied(NamedTuple):
    """A copy that an op makes, element by element: from where and into what, each counted as in a `Patch`."""

    source: int
    displacement: int
    lies: Layout
    target: int
    target_displacement: int
    target_lies: Layout


class Replay(NamedTuple):
    """What an op launches."""

    #: Has the device carry out what `parameters` say, behind all work given so far, in the default stream.
    launch: Callable[[], None]
    parameters: bytearray
    patches: tuple[Patch, ...]
    slots: tuple[Slot, ...]
    #: The results in their order, each in a block of its own; none if the op has none, or if it is an operand.
    made: tuple[Made, ...]
    #: The memory that the op allocates: how many bytes, and what lies there. All but the results is free at once.
    blocks: tuple[tuple[int, Layout], ...]
    #: Tells whether all is still there that the launches lead to beside operands and blocks; None if nothing is.
    holds: Callable[[], bool] | None = None
    #: What the addresses of operands must be multiples of: a library chooses its kernels by that.
    alignment: int = 1
    #: All that is launched, in this order, if it is copies alone: whoever gathers small ops may make them instead.
    copies: tuple[Copied, ...] = ()


class Replays(Protocol):
    """Captures ops. Called from the op loop only."""

    def inputs(self, name: str, kinds: tuple[Kind, ...]) -> tuple[DType, ...] | None:
        """Return in which types the elementwise op ``name`` reads operands of these ``kinds``; None if it cannot."""

    def let_go(self) -> bool:
        """Hold nothing more of what launches lead to beside operands and blocks; tell whether there was anything."""

    def capture(self, function: Callable[..., object], args: Sequence[object], kwargs: Mapping[str, object]) -> Replay:
        """Return what ``function`` launches, which has run with such arguments before. Nothing is carried out.

        Parameters
        ----------
        args, kwargs
            As for ``function``, with a `Lying` or `Number` for each operand, also in lists and tuples.

        Raises
        ------
        Unrepeatable
            If it does anything else than launch kernels, whose parameters follow the addresses of its operands.
        """
