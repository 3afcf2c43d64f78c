"""What inference can say about a call: its result, its failure, or that it does not know."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import NamedTuple, ParamSpec, TypeAlias, TypeVar

from gpu_backend.opstream.layout import DType, Layout, Shape, SparseLayout

P = ParamSpec("P")
R = TypeVar("R")

#: An offset in bytes into an array's memory, and the layout found there.
Window: TypeAlias = tuple[int, Layout]
#: Which argument is meant: a place among them, or a keyword.
Place: TypeAlias = int | str


class Unproved:
    """The executor must be asked. ``reason`` says why, for people."""

    __slots__ = ("reason",)

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def __repr__(self) -> str:
        return f"Unproved({self.reason!r})"

    def __bool__(self) -> bool:
        return False


class View(NamedTuple):
    """The result is a window on the memory of argument ``of``."""

    offset: int
    layout: Layout
    of: Place


class Returned(NamedTuple):
    """The result is the very argument ``of``."""

    of: Place


class Made(NamedTuple):
    """The result is a new object that stays remote.

    Attributes
    ----------
    qualname
        The public name of its class.
    nbytes
        How much device memory it needs at most.
    known
        What the notebook knows of it, for the rules of its methods.
    """

    qualname: str
    nbytes: int = 0
    known: SparseLayout | None = None


class Later(NamedTuple):
    """The call surely succeeds; of what shape its results are, only their values say.

    Attributes
    ----------
    several
        How many arrays there are in a tuple; None for one array by itself.
    nbytes
        How much memory they need at most.
    as_many_as
        The argument that has as many rows as each result; None if there is none.
    chosen_by
        The argument, a mask, that has as many true elements as each result has rows; None if there is none.
    dtype
        Of what type the results are, if nothing but the number of their rows is unknown; they are C-contiguous then.
    rest
        Their shape without the rows, where that is so.
    """

    several: int | None
    nbytes: int
    as_many_as: int | None = None
    chosen_by: int | None = None
    dtype: DType | None = None
    rest: Shape = ()


class Warned(NamedTuple):
    """The call surely warns, in these words, and then gives what is proved.

    Attributes
    ----------
    kind
        The qualified name of the warning's category.
    """

    proof: Proof
    kind: str
    message: str


#: What `prove` gives for one array.
ArrayProof: TypeAlias = Layout | View | Returned
#: What `prove` gives: a list or tuple has the type of CuPy's result.
Proof: TypeAlias = "ArrayProof | Made | Later | Warned | tuple[ArrayProof, ...] | list[ArrayProof] | Unproved | None"


class CannotProve(Exception):
    """Ends a rule that does not know."""


class WillRaise(Exception):
    """Ends a rule that knows what CuPy raises: ``error``."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error

    def release(self) -> Exception:
        """Return what to raise, and forget it: both in a cycle would keep the arrays of the user's frames alive."""
        error = self.error
        del self.error
        return error


def refusal(kind: type[Exception], *args: object) -> WillRaise:
    """Return what to raise in a rule that knows the exception of CuPy."""
    return WillRaise(kind(*args))


def proves(function: Callable[P, R]) -> Callable[P, R | Unproved]:
    """Make a function of rules one for callers: it raises what CuPy raises, and returns `Unproved` if it must."""

    @wraps(function)
    def proved(*args: P.args, **kwargs: P.kwargs) -> R | Unproved:
        try:
            return function(*args, **kwargs)
        except CannotProve as unknown:
            return Unproved(str(unknown))
        except WillRaise as known:
            raise known.release() from None

    return proved
