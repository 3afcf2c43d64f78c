"""The form of an op: what all its repeats share, worked out once and found again by one look-up."""

from __future__ import annotations

from typing import NamedTuple

from gpu_backend.opstream.draws import is_draw
from gpu_backend.opstream.layout import Layout, SomeRows, some_rows
from gpu_backend.opstream.proof.outcome import Later, Returned, View
from kernelproxy.mirror.effects import Effect, effect_of
from kernelproxy.mirror.host_mirror import MOST_BYTES, PASSING
from kernelproxy.stream.costs import Cost, Costs

#: Forms that a session remembers: a loop over ever new shapes must not grow without end.
_MOST_FORMS = 16_384


class OpKind(NamedTuple):
    """What tells an op from others before anybody asks what it is given.

    Attributes
    ----------
    name, orders
        As of `Op`.
    results
        How many handles it takes for what it makes.
    size
        Bytes of the largest array it deals with.
    what
        What it does, if its name does not say it: what it will take is known by both.
    made
        The layout of its one result, if there is one.
    may_reuse
        Whether it may compute into the memory of an array that lies as its one result will, and that the notebook has
        dropped: it must be a ufunc, with its output last.
    """

    name: str
    results: int = 1
    orders: tuple[str, ...] | None = None
    size: int = 0
    what: object = None
    made: Layout | None = None
    may_reuse: bool = False


class Form:
    """An op of a kind, as it is recorded again and again in one session.

    Attributes
    ----------
    name, orders, results, size, made
        As of `OpKind`.
    reusable
        The layout of memory that it may compute into; None if it may into none.
    cost
        What it takes.
    is_quiet
        Whether it leaves all that the host mirror knows as it is.
    is_small
        Whether the host mirror may be able to know what it makes.
    is_keeping
        Whether what it makes may show or hold what it is given, so that the host mirror is to know nothing of either.
    is_writing
        Whether it makes nothing and is no code of the user's: of arrays that the host mirror does not know it has
        nothing to note.
    low, high
        Where an operand is a number: between which numbers it is of this form.
    gives
        What a call of this form gives if that is made of an argument: a window on it, and then there is no op, or the
        argument itself; or if only its values say how large it is.
    rows
        What is known of each array that it gives, if all but the number of its rows is.
    """

    __slots__ = (
        "cost", "gives", "high", "is_keeping", "is_quiet", "is_small", "is_writing", "low", "made", "name", "orders",
        "results", "reusable", "rows", "size",
    )  # fmt: skip

    def __init__(
        self, kind: OpKind, cost: Cost, low: float = 0, high: float = 0, gives: View | Returned | Later | None = None
    ) -> None:
        self.name, self.results, self.orders, self.size = kind.name, kind.results, kind.orders, kind.size
        self.made = kind.made
        self.reusable = kind.made if kind.may_reuse else None
        self.cost = cost
        self.is_quiet = kind.results > 0 and PASSING[kind.name]
        self.is_small = kind.size <= MOST_BYTES and not is_draw(kind.name)
        effect = effect_of(kind.name)
        self.is_keeping = kind.results > 0 and kind.name != ".window" and effect is Effect.KEEPS
        self.is_writing = not kind.results and effect in (Effect.READS, Effect.WRITES)
        self.low, self.high = low, high
        self.gives = gives
        self.rows = rows_of_each(gives) if type(gives) is Later else None


def rows_of_each(proof: Later) -> SomeRows | None:
    """Return what is known of each result, if nothing but the number of its rows depends on values."""
    return None if proof.dtype is None else some_rows(proof.dtype, proof.rest, proof.nbytes)


class Forms(dict[tuple[object, ...], Form]):
    """The forms of a session: those of kinds by the kind, others by what whoever remembers them looks at."""

    def __init__(self, costs: list[Costs]) -> None:
        self._costs = costs

    def of(self, kind: OpKind, low: float = 0, high: float = 0, gives: View | Returned | Later | None = None) -> Form:
        """Return a form of ``kind``, which is not remembered."""
        return Form(kind, self._costs[kind.size.bit_length()][kind.what or kind.name], low, high, gives)

    def keep(self, key: tuple[object, ...], form: Form) -> Form:
        """Remember ``form`` under ``key``, and return it."""
        if len(self) >= _MOST_FORMS:
            self.clear()
        self[key] = form
        return form

    def __missing__(self, kind: tuple[object, ...]) -> Form:
        return self.keep(kind, self.of(OpKind(*kind)))  # type: ignore[arg-type]
