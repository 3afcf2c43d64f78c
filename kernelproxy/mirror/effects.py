"""What ops do with the arrays that they are given: only read them, write them, or keep them for later."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from functools import cache

from gpu_backend.opstream import surface
from gpu_backend.opstream.contents import KEEP, WRITE_KEPT
from gpu_backend.opstream.draws import is_draw
from gpu_backend.wire import values as wire
from gpu_backend.wire.channels import CHANNEL, RECEIVE, SEND
from kernelproxy import compiled


class Effect(Enum):
    """The most that an op may do."""

    #: It reads its arguments and makes new memory.
    READS = 1
    #: It may write its arguments, and is done with them when it has run.
    WRITES = 2
    #: It is code of the user's: it may write its arguments, and may fail.
    RUNS_CODE = 3
    #: Its result may show or hold memory of its arguments, so that others write them later. What is not described
    #: here is one of these.
    KEEPS = 4


#: Functions that read their arguments and give new memory, unless they are told where to put it. What may give a view
#: is proved to be one before it gets here, or asked for, and then described as one.
_READING = frozenset(
    """all amax amin any append arange argmax argmin argpartition argsort argwhere around array array_equal average
    bincount choose clip compress concatenate convolve corrcoef correlate count_nonzero cov cross cumprod cumsum
    diff digitize dot dstack ediff1d einsum empty empty_like extract eye flatnonzero full full_like hstack identity
    histogram inner interp isclose isin kron lexsort linspace logspace matmul max mean min nonzero nanargmax
    nanargmin nanmax nanmean nanmin nanprod nanstd nansum nanvar ones ones_like outer prod ptp
    repeat roll round searchsorted select sort stack std sum take tensordot tile trace tri tril triu unique vander var
    vdot vstack where zeros zeros_like""".split()
)
_READING_METHODS = frozenset(
    """__getitem__ __pow__ all any argmax argmin argpartition argsort astype clip compress conj copy cumprod cumsum dot
    flatten max mean min nonzero prod ptp repeat round searchsorted std sum take trace var""".split()
)
_READING_LINALG = frozenset("cholesky det eigh eigvalsh inv lstsq norm pinv qr slogdet solve svd".split())
_WRITING = frozenset(
    f"cupy.{name}" for name in ("copyto", "fill_diagonal", "place", "put", "put_along_axis", "putmask")
) | {
    f"cupy.ndarray.{name}"
    for name in ("__setitem__", "fill", "partition", "put", "scatter_add", "scatter_max", "scatter_min", "sort")
}
_CODE = frozenset({".launch", ".call"})
_TRANSFERS = frozenset({".store", ".store_where", ".write", WRITE_KEPT, RECEIVE})
_CUDA_OBJECTS = ("cupy.cuda.Event", "cupy.cuda.Stream")
#: Verbs without arrays, or that only look at them, and cannot fail: what is known stays known, whatever they are given.
LOOKING = frozenset(
    (".nothing", KEEP, ".same", ".layout", ".synchronize", ".memory", ".ways", ".wait_event", "cupy.cuda.Event")
) | {"cupy.cuda.Stream", CHANNEL, SEND}
#: Keywords by which a function is told where to put its result, or that it may spoil an argument.
_PUTTING = ("out", "output", "overwrite")


@cache
def effect_of(name: str) -> Effect:
    """Return what the op ``name`` may do with its arguments."""
    if name in LOOKING or _is_reading(name):
        return Effect.READS
    if name in _WRITING or name in _TRANSFERS or name.endswith(".at"):
        return Effect.WRITES
    return Effect.RUNS_CODE if name in _CODE else Effect.KEEPS


def _is_reading(name: str) -> bool:
    module, _, last = name.rpartition(".")
    if module == "cupy.ndarray":
        return last in _READING_METHODS
    if (module == "cupy" and last in _READING) or (module == "cupy.linalg" and last in _READING_LINALG):
        return True
    if is_draw(name):
        return True
    described = surface.load()
    if not module.startswith(("cupy", "cupyx")) or not described.is_public(name):
        return False
    return isinstance(described[described.canonical(name)], surface.Ufunc)


@cache
def is_quiet(name: str) -> bool:
    """Tell whether ``name`` without keywords, with a result of its own, leaves all that is known as it is."""
    if effect_of(name) is not Effect.READS or name in LOOKING:
        return False
    described = surface.load()
    entry = described[described.canonical(name)] if described.is_public(name) else None
    return not isinstance(entry, surface.Ufunc) or entry.nout == 1


def only_reads(name: str, args: tuple[wire.Value, ...], kwargs: dict[str, wire.Value] | None) -> bool:
    """Tell whether an op writes nothing that it is given, whatever its parameters are called.

    Of several arrays, and of one that is not the first argument, one may be told to be the result.
    """
    if effect_of(name) is not Effect.READS:
        return False
    return name in LOOKING or len([*handles_in((args, kwargs))]) == len([*handles_in(args[:1])]) <= 1


def may_put(kwargs: dict[str, wire.Value] | None) -> bool:
    """Tell whether keywords name an array that is written."""
    return kwargs is not None and any(key.startswith(_PUTTING) for key in kwargs)


def handles_in(value: object) -> Iterator[int]:
    """Yield the handles of all that ``value`` names: a value of the wire, or a tuple or dict of such."""
    kind = type(value)
    if kind is wire.Ref or kind is wire.Method:
        yield value.handle  # type: ignore[attr-defined]
    elif kind is wire.View:
        yield value.root  # type: ignore[attr-defined]
    elif kind is wire.Tuple or kind is wire.List:
        for one in value.items:  # type: ignore[attr-defined]
            yield from handles_in(one)
    elif kind is wire.Dict:
        for pair in value.items:  # type: ignore[attr-defined]
            yield from handles_in(pair)
    elif kind is tuple:
        for one in value:  # type: ignore[attr-defined]
            yield from handles_in(one)
    elif kind is dict:
        for one in value.values():  # type: ignore[attr-defined]
            yield from handles_in(one)
    elif kind is wire.Slice:
        yield from handles_in((value.start, value.stop, value.step))  # type: ignore[attr-defined]


compiled.learn(looking=LOOKING)
