"""Programs give the same bits, and fail alike, whichever passes are on and wherever the notebook's messages end."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_backend.executor.config import PASSES
from gpu_backend.wire.messages import Op, Want
from gpu_backend.wire.values import DType, Ref, Value, View
from tests.unit.executor.program.played import PlayedNotebook, added, window

#: Ways to choose: none, each alone, all.
CHOICES = [(), *((name,) for name in PASSES), PASSES]
#: Two arrays of eight doubles, for windows of six; all others have six.
WIDE, FIRST = (1, 2), 3
BEGIN = [Op("cupy.arange", handle, (float(handle), handle + 8.0)) for handle in WIDE]
BEGIN += [Op("cupy.arange", handle, (float(handle), handle + 6.0)) for handle in (FIRST, FIRST + 1)]
#: Names, with their further arguments, of what gives an argument itself, an array in its memory, new memory, or an
#: object that remembers it.
GIVING: list[tuple[str, tuple[Value, ...]]] = [
    (".same", ()), (".window", ()), ("cupy.ravel", ()), ("cupy.asarray", ()), ("cupy.reshape", (-1,)),
    ("cupy.ascontiguousarray", ()), ("cupy.flip", ()), ("cupy.real", ()), ("cupy.copy", ()), ("cupy.sort", ()),
    ("cupy.ndarray.astype", (DType("<f8"),)), ("cupy.atleast_1d", ()), ("cupy.cumsum", ()), ("cupy.square", ()),
    ("cupy.lib.stride_tricks.as_strided", ()),
]  # fmt: skip
#: Names of what gives something else than six doubles: it stays, and no other op is given it.
OTHERS = ["cupy.poly1d", "cupyx.scipy.sparse.csr_matrix", "cupy.sum", "cupy.atleast_2d"]
UFUNCS = [("cupy.add", 2), ("cupy.multiply", 2), ("cupy.negative", 1), ("cupy.hypot", 2)]


class Drawn:
    """Ops on few arrays: made, stored, aliased, changed, dropped and used again, some of them missing."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw
        self._next, self._next_other = FIRST + 2, 1000
        self.ops: list[Op] = []

    def _of(self, *choices: str) -> str:
        return self._draw(st.sampled_from(choices))

    def _handle(self) -> int:
        return self._draw(st.integers(FIRST, self._next - 1))

    def _window(self) -> View:
        if self._draw(st.booleans()):
            return window(self._draw(st.sampled_from(WIDE)), self._draw(st.integers(0, 2)))
        return window(self._handle(), 0)

    def _array(self) -> Ref | View:
        return Ref(self._handle()) if self._draw(st.booleans()) else self._window()

    def _drop(self) -> tuple[int, ...] | None:
        return (self._handle(),) if self._of("no", "no", "drop") == "drop" else None

    def _put(self, name: str, args: tuple[Value, ...], want: Want = Want.NOTHING, reuse: int = 0) -> int:
        self.ops.append(Op(name, self._next, args, self._drop(), want, reuse=reuse))
        self._next += 1
        return self._next - 1

    def step(self) -> None:
        """Add an op, or a few that belong together."""
        kind = self._of("ufunc", "ufunc", "ufunc", "giving", "giving", "in place", "other")
        if kind == "ufunc":
            name, count = self._draw(st.sampled_from(UFUNCS))
            second: Value = self._array() if self._draw(st.booleans()) else 1.5
            args = (self._array(), second)[:count]
            reuse = self._handle() if self._draw(st.booleans()) else 0
            made = self._put(name, args, reuse=reuse)
            if self._draw(st.booleans()):
                self.ops.append(Op(".store", 0, (self._window(), Ref(made)), self._drop()))
                self.ops += [Op(".nothing", 0, (), (made,))] * self._draw(st.integers(0, 1))
        elif kind == "giving":
            name, more = self._draw(st.sampled_from(GIVING))
            self._put(name, (self._array(), *more), self._draw(st.sampled_from([Want.NOTHING, Want.DESCRIPTION])))
        elif kind == "in place":
            target = self._array()
            self.ops.append(Op("cupy.add", 0, (target, self._array(), target), self._drop()))
        else:
            self.ops.append(Op(self._of(*OTHERS), self._next_other, (self._array(),), self._drop()))
            self._next_other += 1


@st.composite
def programs(draw: st.DrawFn) -> tuple[Op, ...]:
    drawn = Drawn(draw)
    for _ in range(draw(st.integers(1, 12))):
        drawn.step()
    return tuple(drawn.ops)


def outcome(ops: tuple[Op, ...], passes: tuple[str, ...], bundles: list[int], most: int) -> tuple[object, object]:
    """Return the errors and the contents of all that is there in the end."""
    on = PlayedNotebook(passes)
    on.run(*BEGIN)
    answers = on.run(*ops, bundles=bundles, most=most)
    errors = [(one.error.kind, one.error.message, one.error.caused_by) for one in answers if one.error is not None]
    return errors, on.holds()


@pytest.mark.parametrize("passes", CHOICES, ids=str)
@settings(deadline=None, max_examples=40)
@given(programs(), st.lists(st.integers(1, 4), max_size=12), st.sampled_from([1, 2, 100]))
def test_programs_give_the_same_bits(
    passes: tuple[str, ...], ops: tuple[Op, ...], bundles: list[int], most: int
) -> None:
    assert outcome(ops, passes, bundles, most) == outcome(ops, (), [1] * len(ops), 1)


def places(on: PlayedNotebook, *handles: int) -> list[int]:
    return [on.stream.heap.objects[handle].ctypes.data for handle in handles]


@pytest.mark.parametrize("passes", CHOICES, ids=str)
@pytest.mark.parametrize("bundles", [[3], [1, 1, 1], [1, 2], [2, 1]], ids=str)
def test_each_pass_works_across_the_ends_of_messages_and_can_be_switched_off(
    passes: tuple[str, ...], bundles: list[int]
) -> None:
    on = PlayedNotebook(passes)
    on.run(*BEGIN)
    (before,) = places(on, 3)
    stores: list[object] = []
    store = on.stream._functions[".store"]
    on.stream._functions[".store"] = lambda *args: stores.append(args) or store(*args)
    into = window(1, 1)
    on.run(
        added(20, Ref(3), 1.5), Op(".store", 0, (into, Ref(20))), added(21, Ref(3), 2.5, drop=(20,), reuse=3),
        bundles=bundles,
    )  # fmt: skip
    assert (not stores) == ("store" in passes)
    assert (places(on, 21) == [before]) == ("reuse" in passes)
    assert on.contents(into).tolist() == [4.5, 5.5, 6.5, 7.5, 8.5, 9.5]
    assert on.contents(Ref(21)).tolist() == [5.5, 6.5, 7.5, 8.5, 9.5, 10.5]
    assert on.stream.heap.kind(20) is on.stream.heap.kind(3) is None


@pytest.mark.parametrize("operand", [Ref(FIRST), window(FIRST, 0)], ids=["itself", "a window on it"])
def test_memory_is_not_reused_where_an_operand_would_have_to_be_copied_first(operand: Ref | View) -> None:
    """Of another place in it, say, or in another order: a copy takes as long as new memory does."""
    on = PlayedNotebook(("reuse",))
    on.run(*BEGIN)
    (before,) = places(on, FIRST)
    on.run(added(20, operand, 1.5, reuse=FIRST))
    assert (places(on, 20) == [before]) == isinstance(operand, Ref)
    assert on.contents(Ref(20)).tolist() == [4.5, 5.5, 6.5, 7.5, 8.5, 9.5]
