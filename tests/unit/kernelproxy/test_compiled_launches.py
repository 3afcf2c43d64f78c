"""Launches that the compiled core finds again by itself: the very ones that Python records, whatever they are given."""

from __future__ import annotations

import enum
import gc
import math
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpu_backend.opstream.layout import contiguous
from gpu_backend.opstream.proof.outcome import Returned
from gpu_backend.wire import values as wire
from kernelproxy import compiled
from kernelproxy.calls import launches
from kernelproxy.calls.launches import Launch, known_launch, launched, remember_launch
from kernelproxy.client import current
from kernelproxy.namespace.names import make
from tests.unit.kernelproxy.conftest import played_client

pytestmark = pytest.mark.skipif(not compiled.is_compiled, reason="nothing is compiled here")

KERNEL, REF = 77, wire.Ref(77)
_SHAPE = (1,), (64,)
_SENT_SHAPE = wire.Tuple((1,)), wire.Tuple((64,))


class Colour(enum.IntEnum):
    RED = 3


class Which(enum.Enum):
    """One of the arrays."""

    WHOLE, TURNED, WINDOW, OTHER, OWN = range(5)


numbers = (
    st.integers(-70000, 70000) | st.sampled_from([1 << 62, 1 << 63, -(1 << 63), 1 << 70, 32767, 32768, 65535, 65536])
    | st.floats() | st.booleans() | st.none() | st.complex_numbers() | st.text(max_size=2)
    | st.sampled_from([Colour.RED, math.nan, 65504.0, 65505.0])
    | st.sampled_from([np.float32(2), np.float64(1e9), np.int8(-3), np.uint64(1 << 63), np.bool_(True)])
    | st.sampled_from([np.complex64(1j), np.float16(3)])
)  # fmt: skip
#: What it is said to give: nothing, a new array, or one of its arguments, also one that it has not.
proofs = st.sampled_from([None, contiguous((4,), np.dtype("f4")), Returned(1), Returned(2), Returned(9)])


class Arrays(tuple[Any, ...]):
    """Arrays that nobody can show: their executor has no contents."""

    def __repr__(self) -> str:
        return "arrays"


@pytest.fixture(scope="module")
def arrays() -> Any:
    """Arrays of an executor that is played, and one of a class of the user's."""
    with played_client():
        cube = make("cupy.zeros")((4, 5, 6))
        own = type("Own", (make("cupy.ndarray"),), {})
        yield Arrays((cube, cube.T, cube[1:3], make("cupy.ones")(7), cube.view(own)))


def _empty(pipeline: Any) -> None:
    pipeline.dropped.clear()
    pipeline.open_batch = type(pipeline.open_batch)(1)
    pipeline.next_handle, pipeline.most_ops = 1_000, 1 << 40
    for costs in pipeline.ahead.costs:
        for cost in costs.values():
            cost.learn(0.0)  # or each op would be sent at once


def _launched(args: tuple[Any, ...], is_shaped: bool, is_used: bool) -> Any:
    """Return what a launch gives or is to be remembered by, and the op that was recorded for it."""
    pipeline: Any = current().pipeline
    _empty(pipeline)
    shape, sent = (_SHAPE, _SENT_SHAPE) if is_shaped else ((), ())
    with compiled.used(is_used):
        made = launched(current(), KERNEL, REF, shape, args, sent)
    batch = pipeline.open_batch
    told = [(op.name, op.out, op.args, op.kwargs, op.drop, op.stream) for op in batch.ops]
    if isinstance(made, Launch):
        return "to be remembered by", made.key, made.args, told
    if made is not None and any(one is made[0] for one in args):
        return "one of them", [one is made[0] for one in args], told
    return None if made is None else (getattr(made[0], "_layout", None), getattr(made[0], "_ref", None)), told


@given(st.data(), proofs, st.booleans(), st.booleans())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=500)
def test_both_ways_record_the_same_launch(
    arrays: Arrays, data: st.DataObject, proof: Any, is_shaped: bool, is_remembered: bool
) -> None:
    drawn = data.draw(st.lists(numbers | st.sampled_from(list(Which)), max_size=5))
    args = Arrays(arrays[one.value] if type(one) is Which else one for one in drawn)
    current().pipeline.forms.clear()
    known = known_launch(current(), KERNEL, _SHAPE if is_shaped else (), args)
    if known is not None and is_remembered:
        remember_launch(known, KERNEL, proof, 4 if proof is not None else 0)
    again = Arrays(_alike(data, one) for one in args)
    for given_ in map(tuple, (args, again)):
        try:
            pure: Any = _launched(given_, is_shaped, False)
        except IndexError:  # it has not what it is said to give
            continue
        assert _told(_launched(given_, is_shaped, True)) == _told(pure)


def _alike(data: st.DataObject, one: Any) -> Any:
    return data.draw(st.integers(-70000, 70000)) if type(one) is int else -one if type(one) is float else one


def _told(found: Any) -> str:
    return repr(found)  # where NaN is what it is


def test_a_launch_that_is_known_is_not_left_to_python(arrays: Arrays, monkeypatch: pytest.MonkeyPatch) -> None:
    _empty(current().pipeline)
    args = arrays[0], 2, 0.5, np.int32(4)
    known = known_launch(current(), KERNEL, _SHAPE, args)
    assert known is not None
    remember_launch(known, KERNEL, None, 0)
    monkeypatch.delattr(launches, "known_launch")
    with compiled.used(True):
        assert launched(current(), KERNEL, REF, _SHAPE, args, _SENT_SHAPE) == (None,)
    with compiled.used(False), pytest.raises(NameError):
        launched(current(), KERNEL, REF, _SHAPE, args, _SENT_SHAPE)


def test_nothing_is_held_on_to(arrays: Arrays) -> None:
    pipeline: Any = current().pipeline
    args = arrays[0], 2, 0.5, np.int32(4), 1 << 70
    _empty(pipeline)
    for proof in (None, Returned(1)):
        known = known_launch(current(), KERNEL, (), args[:-1])
        assert known is not None
        remember_launch(known, KERNEL, proof, 0)

        def turns(count: int, objects: tuple[Any, ...]) -> list[int]:
            for _ in range(count):
                launched(current(), KERNEL, REF, (), args[:-1], ())
                launched(current(), KERNEL, REF, (), args, ())
                _empty(pipeline)
            gc.collect()
            return [*map(sys.getrefcount, objects)]

        objects = (REF, arrays[0], arrays[0]._ref, arrays[0]._layout, args[1], args[2], args[3], args[4], current())
        turns(10, objects)
        before, allocated = turns(1, objects), sys.getallocatedblocks()
        assert turns(2_000, objects) == before
        assert sys.getallocatedblocks() - allocated < 500
