"""Walks from every object that a client can get to all that the protocol lets it reach from there, breadth first."""

from __future__ import annotations

import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NamedTuple, TypeVar

import numpy as np

from gpu_backend.devices.base import Device
from gpu_backend.executor.surface_names import SurfaceNames
from gpu_backend.wire.messages import Op, Want
from gpu_backend.wire.values import Method, Ref, Value
from tests.attack import words
from tests.attack.canaries import Canaries
from tests.attack.hostile import Hostile, InProcess
from tests.attack.judgement import forbidden, foreign
from tests.attack.seeds import Materials, Seed, names, seeds

T = TypeVar("T")

#: How long an op may take, seconds; what takes longer is left.
_OP_SECONDS = 1.0
#: Handles of results; far above those of the materials.
_FIRST = 1 << 40
#: With so many ways out found there is nothing to learn from more.
_MOST_HOLES = 200


class _Overdue(BaseException):
    """An op took too long. No `Exception`, or the op stream would take it for the op's own."""


class Faulted(Exception):
    """A kernel met memory that is not there: CUDA does nothing more for this process, and so the crawl begins anew."""


class Capturing(Exception):
    """A stream notes down what it is given, and nothing is computed: what follows could not be judged."""


class Node(NamedTuple):
    """Something reached: what names it on the wire, how it was reached, and the object itself, if it is in the heap."""

    value: Value
    chain: tuple[str, ...]
    held: Any


class Bound(NamedTuple):
    """How far a crawl goes: objects to walk from, whether every word is tried at each, and chains to leave out.

    ``barren`` are calls to begin with of which it is known that nothing follows from them.
    Of crawls that share the work, ``part`` of ``parts`` begins at every so many-th name.
    """

    objects: int
    has_all_words: bool
    left_out: frozenset[str] = frozenset()
    part: int = 0
    parts: int = 1
    barren: frozenset[str] = frozenset()


class Crawler:
    """Crawls an op stream of this process on ``device``.

    ``tell`` is told each chain before it is tried, and ``tell_barren`` each call to begin with that led to nothing.
    """

    def __init__(
        self, device: Device, canaries: Canaries, bound: Bound, tell: Callable[[str], None],
        tell_barren: Callable[[str], None],
    ) -> None:  # fmt: skip
        self.device, self.canaries = device, canaries
        self._bound, self._tell, self._tell_barren = bound, tell, tell_barren
        self.way = InProcess(device)
        self.hostile = Hostile(self.way)
        self.materials = Materials(self.hostile, canaries)
        self.objects, self.tried, self.refused, self.reached = 0, 0, 0, 0
        #: Chains that lead out, by what they lead to and their last step.
        self.holes: dict[tuple[str, str], str] = {}
        #: Classes of other packages that were met; not a way out as such.
        self.foreign: set[str] = set()
        self.overdue: list[str] = []
        self._words = words.everything() if bound.has_all_words else words.ESCAPES
        self._next = _FIRST
        self._known: set[Any] = set()
        #: What ops made comes before what is only a name of the surface: there are many of those, and they are alike.
        self._queue: deque[Node] = deque()
        self._names: deque[Node] = deque()
        self._allowed = SurfaceNames(device)
        self._served = {id(kind) for name in names() if isinstance(kind := self._resolved(name), type)}
        self._instances: dict[str, Ref] = {"ndarray": self.materials.vector}

    def crawl(self) -> None:
        """Walk until nothing new is reached, or the bound is."""
        for text, value in self._own(self.materials.roots()):
            held = self.way.stream.heap.objects.get(value.handle) if isinstance(value, Ref) else value
            self._queue.append(Node(value, (text,), held))
        classes = [name for name in names() if isinstance(self._resolved(name), type)]  # all begin by what they make
        for name in dict.fromkeys((*classes, *self._own(names()))):
            for number, seed in enumerate(seeds(name, self.materials, self._instance_of)):
                self._begin(seed, f"{number} {seed.text}")
        while self.objects < self._bound.objects and len(self.holes) < _MOST_HOLES and (self._queue or self._names):
            self._explore(self._queue.popleft() if self._queue else self._names.popleft())

    def _own(self, items: Iterable[T]) -> list[T]:
        return list(items)[self._bound.part :: self._bound.parts]

    def _resolved(self, name: str) -> Any:
        """Return what an executor gives for ``name``; None if it gives nothing, and then imports nothing either."""
        try:
            return self._allowed.resolve(name)
        except AttributeError:
            return None

    def counts(self) -> dict[str, int]:
        """Return how much was tried, and what came of it."""
        return {
            "objects walked from": self.objects,
            "objects left": len(self._queue) + len(self._names),
            "attempts": self.tried,
            "refused": self.refused,
            "reached something": self.reached,
            "ways out": len(self.holes),
        }

    # --- one step -----------------------------------------------------------------------------------------------------

    def _begin(self, seed: Seed, word: str) -> None:
        if word in self._bound.barren:
            return
        reached = list(self._try(seed.name, seed.args, (seed.text,)))
        if not reached:
            self._tell_barren(word)
        for node in reached:
            if isinstance(node.value, Ref):
                self._instances.setdefault(type(node.held).__name__, node.value)

    def _instance_of(self, owner: str) -> Value:
        found = self._instances.get(owner.rpartition(".")[2])
        if found is None:
            return self.materials.vector
        return found

    def _explore(self, node: Node) -> None:
        self.objects += 1
        present = set(dir(node.held)) if isinstance(node.value, Ref) else set()
        for word in dict.fromkeys((*sorted(present), *self._words)):
            self._ask_for(node, word, word in present or not isinstance(node.value, Ref))
        if not forbidden(node.held):  # calling the interpreter's own doors would only do harm here
            for args in ((), (self.materials.vector,), *((value,) for value in self.materials.hostile_values)):
                list(self._try(".call", (node.value, *args), (*node.chain, ".call")))
        for key in words.KEYS if isinstance(node.held, dict) else ():
            for verb in ("get", "__getitem__"):
                list(self._try(".method", (node.value, verb, key), (*node.chain, f".method {verb} {key!r}")))

    def _ask_for(self, node: Node, word: str, is_there: bool) -> None:
        got = list(self._try(".getattr", (node.value, word), (*node.chain, f".getattr {word}")))
        if isinstance(node.value, Ref):
            method = Method(node.value.handle, word)
            got += self._try(".same", (method,), (*node.chain, f"Method {word}"))
        if forbidden(node.held) or not (got or is_there):
            return
        refused = self.refused
        list(self._try(".method", (node.value, word), (*node.chain, f".method {word}")))
        if self.refused > refused and not self._may_want_arguments:
            return
        numbers = 1 if word.startswith("__") else 0  # no power of an address: it would never be done
        for value in self.materials.hostile_values[: len(self.materials.hostile_values) - numbers]:
            list(self._try(".method", (node.value, word, value), (*node.chain, f".method {word} (a canary)")))
        list(self._try(".setattr", (node.value, word, self.canaries.word), (*node.chain, f".setattr {word}")))

    def _try(self, name: str, args: tuple[Value, ...], chain: tuple[str, ...]) -> Iterator[Node]:
        """Carry out an op, look at what it gave and touched, and yield what is new of it."""
        text = " → ".join(chain)
        if text in self._bound.left_out:
            return
        self._tell(f"{self.tried} {text}")
        out = self._next
        self._next += 64
        self.tried += 1
        self._may_want_arguments = False
        self.canaries.begin()
        try:
            with _overdue_after(_OP_SECONDS):
                (answer,) = self.way.carry_out([Op(name, out, args, None, Want.NOTHING)])
            self._wait_for_the_device()
        except _Overdue:
            self.overdue.append(text)
            return
        finally:
            touched = self.canaries.end()
        for what in touched:
            self._out(what, chain)
        if answer is not None and answer.error is not None:
            self.refused += 1
            self._may_want_arguments = answer.error.kind == "builtins.TypeError" and "argument" in answer.error.message
            return
        yield from self._results(out, chain)

    def _wait_for_the_device(self) -> None:
        """Wait until the op is done, so that a fault is of the op that made it.

        Raises
        ------
        Faulted
            The device computes no more.
        Capturing
            It was told to note down instead of to compute.
        """
        try:
            self.device.synchronize()
        except Exception as error:
            if "StreamCapture" in str(error):
                raise Capturing from None
            raise Faulted(str(error)) from error

    def _results(self, out: int, chain: tuple[str, ...]) -> Iterator[Node]:
        heap = self.way.stream.heap
        for handle in range(out, out + 64):
            if handle not in heap.objects:
                break
            held = heap.objects[handle]
            if held is None or held is NotImplemented:
                heap.drop(handle)
                continue
            self.reached += 1
            self._judge(held, chain)
            key = _kind(held)
            if key in self._known:
                heap.drop(handle)
                continue
            self._known.add(key)
            node = Node(Ref(handle), chain, held)
            if forbidden(held) or foreign(held):
                self._queue.appendleft(node)  # how far it leads is worth to know
            else:
                (self._names if len(chain) == 1 and chain[0].startswith("the name") else self._queue).append(node)
            yield node

    def _judge(self, held: Any, chain: tuple[str, ...], depth: int = 0) -> None:
        wrong = forbidden(held) if id(held) not in self._served else ""
        if wrong:
            self._out(wrong, chain)
        if foreign(held):
            self.foreign.add(f"{type(held).__module__}.{type(held).__qualname__}")
        self._look_for_the_secret(held, chain)
        if isinstance(held, (list, tuple)) and depth < 3 and not wrong:
            for item in held[:20]:
                self._judge(item, chain, depth + 1)

    def _look_for_the_secret(self, held: Any, chain: tuple[str, ...]) -> None:
        if isinstance(held, np.ndarray) and held.dtype.kind != "O" and self.canaries.holds(held.ctypes.data):
            self._out("an array on the process's memory", chain)
        elif self.device.is_array(held) and 32 <= getattr(held, "nbytes", 0) <= 1 << 16:
            if self.canaries.secret[:16] in self.device.download(held).tobytes():
                self._out("the contents of what only the process may read", chain)
        elif isinstance(held, bytes) and self.canaries.secret[:16] in held:
            self._out("the contents of what only the process may read", chain)

    def _out(self, what: str, chain: tuple[str, ...]) -> None:
        self.holes.setdefault((what, chain[-1]), " → ".join(chain))


def _kind(held: Any) -> Any:
    """Return what objects have in common of which one is enough."""
    if callable(held) and hasattr(held, "__qualname__"):
        return (type(held), getattr(held, "__module__", ""), held.__qualname__)
    if isinstance(held, dict):
        return (type(held), tuple(sorted(map(str, held)))[:20])
    if isinstance(held, np.ndarray):
        return (type(held), held.dtype.kind, held.ndim)
    return type(held)


@contextmanager
def _overdue_after(seconds: float) -> Iterator[None]:
    def give_up(number: int, frame: FrameType | None) -> None:
        raise _Overdue

    before = signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
