"""Random results, random views of them, and random questions that the executor answers: NumPy is the judge."""

from __future__ import annotations

import random
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gpu_backend.opstream import surface
from gpu_backend.opstream.layout import Layout
from gpu_backend.wire.errors import OpFailed, WorkbenchError
from kernelproxy.calls import array_core
from kernelproxy.calls.array_core import ArrayCore
from kernelproxy.namespace.names import make
from tests.conformance.infer_calls import TEMPLATES, Array, Call, Draw, Made
from tests.conformance.infer_calls.draw import hash_of
from tests.conformance.infer_judge import layout_of
from tests.conformance.questions import QUESTIONS, Question

#: Larger results tell nothing more.
_MOST_ELEMENTS = 4_000
#: Results that are no numbers yet.
_UNINITIALISED = ("empty", "ndarray")
#: Arrays of the program's own, in every memory order.
_UPLOADED = "uploaded"

Look = Callable[[Any], Any]

LOOKS: dict[str, Look] = {
    "x": lambda x: x,
    "x.T": lambda x: x.T,
    "x[::2]": lambda x: x[::2],
    "x[..., ::-1]": lambda x: x[..., ::-1],
    "x[::-1]": lambda x: x[::-1],
    "x[..., 1:]": lambda x: x[..., 1:],
    "x[None]": lambda x: x[None],
    "x[0]": lambda x: x[0, ...],
    "x.swapaxes": lambda x: x.swapaxes(0, -1),
    "x.reshape": lambda x: x.reshape(-1, x.shape[-1]),
    "x.real": lambda x: x.real,
    "x.diagonal": lambda x: x.diagonal(),
}


class Names:
    """The notebook's CuPy as a module, beside another CuPy that the process may have imported."""

    def __init__(self, qualname: str) -> None:
        self._qualname = qualname

    def __getattr__(self, name: str) -> Any:
        qualname = f"{self._qualname}.{name}"
        return Names(qualname) if isinstance(surface.load().get(qualname), surface.Module) else make(qualname)


REMOTE = Names("cupy")


class Case(NamedTuple):
    """One case: everything follows from it."""

    seed: int
    source: str
    looks: tuple[str, ...]
    question: str


class Tally:
    """What has been asked, by its answer: "same", "refused" by either side, or what was wrong."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.by_question: Counter[str] = Counter()
        self.by_source: Counter[str] = Counter()
        self.wrong: list[str] = []

    def add(self, case: Case, verdict: str) -> None:
        """Count a verdict."""
        self.counts[verdict if verdict in ("same", "refused", "no array") else "wrong"] += 1
        if verdict == "same":
            self.by_question[case.question] += 1
            self.by_source[case.source] += 1
        elif verdict not in ("refused", "no array"):
            self.wrong.append(f"{case}: {verdict}")

    def __str__(self) -> str:
        return (
            f"{dict(self.counts)}, {len(self.by_source)} sources, {len(self.by_question)} questions: "
            f"{dict(sorted(self.by_question.items()))}"
        )


def cases(seed: int, count: int) -> list[Case]:
    """Return ``count`` cases."""
    sources = [_UPLOADED] * (len(TEMPLATES) // 4) + sorted(TEMPLATES)
    made = []
    for number in range(count):
        draw = random.Random(hash_of(seed, number))
        looks = tuple(draw.choices(list(LOOKS), k=draw.randint(0, 2)))
        made.append(Case(hash_of(seed, number, "case"), draw.choice(sources), looks, draw.choice(sorted(QUESTIONS))))
    return made


def verdict(case: Case) -> str:
    """Return "same" if the answer is NumPy's, "refused" if there is none, else what is wrong."""
    draw = Draw(case.seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = _result_of(case.source, draw)
        if found is None:
            return "no array"
        host = _outcome(lambda: mirror(found))
        if isinstance(host, Exception):  # the device refuses what CuPy takes, and says so when it is asked
            return "refused"
        if found._layout.c_contiguous and case.source != _UPLOADED and draw.chance(0.8):
            return "no array"  # too many lie like that
        try:
            seen, shown = found, host
            for look in case.looks:
                seen, shown = LOOKS[look](seen), LOOKS[look](shown)
        except (ValueError, IndexError):
            return "no array"
        if not isinstance(seen, ArrayCore) or not isinstance(shown, np.ndarray) or not shown.size:
            return "no array"
        return judged(case.question, (found, host), (seen, shown), case.seed)


def judged(name: str, roots: tuple[Any, Any], views: tuple[Any, Any], seed: int) -> str:
    """Return the verdict on a question about a view; CuPy's array stands beside NumPy's, which lies as it does."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _judged(QUESTIONS[name], *roots, *views, seed)


def _judged(question: Question, found: Any, host: Any, seen: Any, shown: Any, seed: int) -> str:
    known = _outcome(lambda: question.of_numpy(shown, Draw(seed)))
    known = np.asarray(known) if isinstance(known, np.generic) else known
    given = _outcome(lambda: question.of_cupy(REMOTE, seen, Draw(seed)))
    if isinstance(given, Exception):
        is_ours = type(given) is Exception or isinstance(given, (WorkbenchError, OpFailed))
        return f"raised {given!r}" if is_ours else "refused"
    if isinstance(known, Exception):
        return "refused"
    wrong = _compared(known, given)
    if wrong:
        return f"of {_told(found)}, {wrong}"
    for one, other in zip(_arrays(known), _arrays(given), strict=True):
        if question.is_copied or not isinstance(other, ArrayCore) or not one.size:
            continue
        if one.flags.writeable and np.shares_memory(one, host):  # what is stored in one is seen in the other
            one[...] = one.dtype.type(1)
            other[...] = other.dtype.type(1)
    if not _are_same(host, found.get()):
        return f"of {_told(found)}, the array itself is another now"
    return "same"


def _result_of(source: str, draw: Draw) -> Any:
    """Return an array that the notebook believes to know the layout of."""
    if source == _UPLOADED:
        return _sent(draw.array(1, 3), draw.random)
    call = Call(source, *draw.one(TEMPLATES[source])(draw))
    if source.rpartition(".")[2].startswith(_UNINITIALISED):
        return None
    made = _outcome(lambda: _carried_out(call, draw.random))
    arrays = [one for one in _arrays(made) if isinstance(one, ArrayCore) and 0 < one.size < _MOST_ELEMENTS]
    return draw.one(arrays) if arrays else None


def _carried_out(call: Call, chance: random.Random) -> Any:
    args, kwargs = _given(call.args, chance), _given(call.kwargs, chance)
    owner, _, name = call.qualname.rpartition(".")
    if owner == "cupy.ndarray":
        member = getattr(args[0], name)
        return member(*args[1:], **kwargs) if callable(member) else member
    return make(call.qualname)(*args, **kwargs)


def _given(value: Any, chance: random.Random) -> Any:
    if isinstance(value, Array):
        return _sent(value, chance)
    if isinstance(value, Made):
        return make(value.qualname)(*value.args)
    if isinstance(value, (list, tuple)):
        return type(value)([_given(item, chance) for item in value])
    if isinstance(value, dict):
        return {name: _given(item, chance) for name, item in value.items()}
    return value


def _sent(spec: Array, chance: random.Random) -> Any:
    """Return a remote array that lies as ``spec`` says, with random contents."""
    layout, offset, size = layout_of(spec)
    draw = np.random.default_rng(chance.getrandbits(32))
    count = -(-size // layout.itemsize)
    kind = layout.dtype.kind
    if kind == "c":
        content = draw.normal(size=count) + 1j * draw.normal(size=count)
    else:
        content = draw.normal(size=count) if kind == "f" else draw.integers(0, 2 if kind == "b" else 100, count)
    root = REMOTE.asarray(content.astype(layout.dtype))
    if offset == 0 and (layout.c_contiguous or layout.f_contiguous) and chance.random() < 0.7:
        host = np.ndarray(layout.shape, layout.dtype, content.astype(layout.dtype), 0, layout.strides)
        return REMOTE.asarray(host)
    return array_core.view_of(root, offset, layout)


def mirror(array: Any) -> Any:
    """Return a NumPy array with the contents of ``array`` that lies as the notebook believes of that."""
    layout: Layout = array._layout
    reach = [stride * (extent - 1) for stride, extent in zip(layout.strides, layout.shape, strict=True)]
    low = sum(part for part in reach if part < 0)
    high = sum(part for part in reach if part > 0) + layout.itemsize
    made = np.ndarray(layout.shape, layout.dtype, bytearray(high - low), -low, layout.strides)
    made[...] = array.get()
    return made


def _outcome(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except (Exception, AssertionError) as error:
        return error


def _arrays(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return [array for item in value for array in _arrays(item)]
    return [value] if isinstance(value, (ArrayCore, np.ndarray)) else []


def _compared(known: Any, given: Any) -> str:
    if isinstance(known, (list, tuple)):
        if not isinstance(given, (list, tuple)) or len(known) != len(given):
            return f"known {known!r}, given {given!r}"
        return "; ".join(filter(None, map(_compared, known, given)))
    host = given.get() if isinstance(given, ArrayCore) else given
    return "" if _are_same(known, host) else f"known {known!r}, given {host!r}"


def _are_same(known: Any, given: Any) -> bool:
    if isinstance(known, (bytes, str)):
        return bool(known == given)
    one, other = np.asarray(known), np.asarray(given)
    if one.shape != other.shape:
        return False
    wide = "D" if "c" in one.dtype.kind + other.dtype.kind else "d"
    tolerance = 2e-2 if "e" in one.dtype.char + other.dtype.char else 1e-4
    return np.allclose(one.astype(wide), other.astype(wide), rtol=tolerance, atol=tolerance, equal_nan=True)


def _told(array: Any) -> str:
    return f"{array._layout}, {type(array._ref).__name__}"
