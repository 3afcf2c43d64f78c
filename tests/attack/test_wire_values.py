"""Ops of random values, as nobody's notebook sends them: each is answered, and none ends the op loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_backend.devices import open_device
from gpu_backend.executor.answer import Answer
from gpu_backend.executor.conversation import QueuedBatch
from gpu_backend.executor.program.run import OpStream
from gpu_backend.wire import values as wire
from gpu_backend.wire.messages import Op, Want

#: What is there: an array, one in another order, an object, nothing, and results of ops before.
_HANDLES = st.sampled_from([1, 2, 3, 4, 99, 0, -1, 1 << 63])
_BIG = st.integers(-(1 << 63), (1 << 64) - 1)
_SMALL = st.integers(-3, 9)
_TEXTS = st.sampled_from(["", "shape", "__class__", "sum", "cupy.add", "0", "a,b", "\0", "{0.__class__}", "é\ud800"])
_DTYPES = st.sampled_from(
    ["<f8", "|u1", "|b1", "<c16", "O", "|V0", "<U3", "M8[ns]", "bfloat16", "no", "", "(2,)<f8", "V99999999", "f8,i4",
     '{"fields": [["a", "<f8", 0]], "itemsize": 8, "aligned": false}', '{"fields": [["a", "<f8", -8]]}', "{", "{}",
     '{"base": "<f8", "shape": [2, -1]}', '{"base": "O", "shape": [1]}'],
)  # fmt: skip
_ORDERS = st.sampled_from(
    ["", "C", "F", "?", "?8", "?16,8", "?8,8", "?-8,64", "0,1", "1,0", "0,0", "2", "-1", "x", "1,", "1,0,2",
     "9" * 5000, "é"]
)  # fmt: skip
_SHAPES = st.lists(_SMALL, max_size=4).map(tuple)
#: Not so large that a product of them leaves 64 bits; those are the device's own test.
_STRIDES = st.lists(st.integers(-(1 << 40), 1 << 40) | st.sampled_from([8, 16, 24, -8, 0]), max_size=4).map(tuple)
_BYTES = st.sampled_from([b"", b"1", bytes(8), bytes(16), b"\xff" * 24])

_OFFSETS = _SMALL.map(lambda place: 8 * place) | st.integers(-(1 << 62), 1 << 62)
_WHOLES = (st.sampled_from([1, 2]), st.just(0), st.just((3, 2)), st.just((16, 8)), st.just("<f8"), _ORDERS)
_VIEWS = st.builds(wire.View, _HANDLES, _OFFSETS, _SHAPES, _STRIDES, _DTYPES, _ORDERS) | st.builds(wire.View, *_WHOLES)
_LEAVES: st.SearchStrategy[Any] = st.one_of(
    st.none(), st.booleans(), _SMALL, _BIG, st.floats(), _TEXTS, _VIEWS,
    st.builds(wire.Ref, _HANDLES),
    st.builds(wire.Scalar, _DTYPES, _BYTES),
    st.builds(wire.Complex, st.floats(), st.floats()),
    st.builds(wire.BigInt, st.sampled_from(["0x0", "-0x1" + "0" * 40, "f" * 9000, "", "z", "0x"])),
    st.builds(wire.Ellipsis),
    st.builds(wire.DType, _DTYPES),
    st.builds(wire.Buffer, st.integers(-9, 9), _DTYPES, _SHAPES, _BYTES),
    st.builds(wire.Name, st.sampled_from(["cupy.sum", "cupy", "cupy.ndarray", "os.system", "", "cupy.ndarray.shape"])),
    st.builds(wire.Bytes, _BYTES),
    st.builds(wire.Method, _HANDLES, _TEXTS),
    st.builds(wire.Callback, _SMALL),
    st.builds(
        wire.SeedSequence, st.lists(st.sampled_from(["0x1", "-0x1", "z", ""]), max_size=3).map(tuple), _SHAPES, _BIG
    ),
    st.builds(wire.ArrayInfo, _HANDLES, _SHAPES, _STRIDES, _DTYPES),
    st.builds(wire.ObjectInfo, _HANDLES, _TEXTS),
)  # fmt: skip


def _nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.lists(inner, max_size=3).map(tuple)
    return st.one_of(
        st.builds(wire.Tuple, several),
        st.builds(wire.List, several),
        st.builds(wire.Dict, st.lists(st.tuples(inner, inner), max_size=2).map(tuple)),
        st.builds(wire.Slice, inner, inner, inner),
    )


_VALUES = st.recursive(_LEAVES, _nested, max_leaves=6)
#: All verbs but those that compile; functions that look at whatever they are given.
_NAMES = st.sampled_from(
    [".nothing", ".same", ".window", ".store", ".store_where", ".fail", ".call", ".method", ".getattr", ".setattr",
     ".write", ".wait_event", ".memory", ".doc", ".begin", ".launch", ".layout", ".cached_codes", ".resume",
     ".python_kernel", "", "cupy.add", "cupy.sum", "cupy.reshape", "cupy.concatenate", "cupy.ndarray.__getitem__",
     "cupy.ndarray.__setitem__", "cupy.array", "cupy.ndarray.astype", "cupy.cuda.Event",
     "cupyx.scipy.sparse.csr_matrix", "os.system", "cupy.load"],
)  # fmt: skip
_OPS = st.builds(
    Op,
    name=_NAMES,
    out=st.sampled_from([0, 0, 4, 5, 77, 1 << 40]),
    args=st.lists(_VALUES, max_size=4).map(tuple),
    drop=st.none() | st.lists(st.sampled_from([4, 5, 99, -1]), max_size=2).map(tuple),
    want=st.sampled_from(list(Want)),
    kwargs=st.none() | st.dictionaries(_TEXTS, _VALUES, max_size=2),
    stream=st.sampled_from([0, 0, 0, 1, 3, 4, 99]),
    reuse=st.sampled_from([0, 0, 4, 99]),
)


def said(stream: OpStream, first: int, *ops: Op) -> list[Answer | None]:
    batch = QueuedBatch(first, ops, 0, (memoryview(bytes(16)),))
    answers: list[Answer | None] = []
    for _ in range(4 * len(ops)):  # each turn runs an op at least, or reads one again whose views were laid out anew
        if batch.next == len(ops):
            return answers
        batch.next, answer = stream.run(batch, float("inf"))
        answers.append(answer)
    raise AssertionError("the op loop goes round in circles")


@pytest.fixture(scope="module")
def stream() -> OpStream:
    return OpStream(open_device("cpu"))


@pytest.mark.filterwarnings("ignore")  # of NumPy, about what nobody would compute
@settings(deadline=None, max_examples=400)
@given(ops=st.lists(_OPS, min_size=1, max_size=5))
def test_no_value_ends_the_op_loop(stream: OpStream, ops: list[Op]) -> None:
    stream.clear()
    grid = wire.Buffer(-1, "<f8", (3, 2), np.arange(6.0).tobytes())
    said(
        stream,
        1,
        Op("cupy.array", 1, (grid,)),
        Op("cupy.asfortranarray", 2, (wire.Ref(1),)),
        Op("cupyx.scipy.sparse.csr_matrix", 3, (wire.Ref(1),)),
    )
    said(stream, 4, *ops)
    (answer,) = said(stream, 9, Op("cupy.sum", 0, (wire.List((1, 2)),), None, Want.CONTENTS))
    assert answer is not None
    (answer,) = said(stream, 10, Op("cupy.arange", 0, (3,), None, Want.CONTENTS))
    assert answer is not None
    assert answer.error is None
