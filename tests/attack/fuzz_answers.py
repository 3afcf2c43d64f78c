"""Plays an executor and a gateway that lie to the notebook in every way that decodes. Run as a process of its own.

Ends with 0 if whatever they say is a value, an exception that an op may raise, or one of our own errors; and if nothing
was imported for them.
"""

from __future__ import annotations

import sys
import warnings
from functools import partial
from math import inf, nan
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import kernelproxy.array.remote_array
import kernelproxy.namespace.names  # noqa: F401 (which knows the classes)
from gpu_backend.opstream.journal import Journal
from gpu_backend.wire import messages as wire
from gpu_backend.wire import values
from gpu_backend.wire.codec import Codec, encode
from gpu_backend.wire.errors import ErrorRecord, ProtocolError, WarningRecord, WireError
from kernelproxy import errors
from kernelproxy.calls.array_core import from_description
from kernelproxy.calls.decoding import Decoder, buffer_to_array, inline_scalar
from kernelproxy.calls.remote_object import class_of
from kernelproxy.calls.stand_ins import object_from_description
from kernelproxy.client import Client
from kernelproxy.stream.ahead import Ahead
from kernelproxy.stream.batch import OpenBatch
from kernelproxy.stream.costs import Cost
from kernelproxy.stream.inbox import Inbox

#: Whose executor it is that answers so.
CLIENT = Client()
often = settings(max_examples=2000, deadline=None, database=None, derandomize=True)

edges = [0, 1, -1, 7, 1 << 31, (1 << 32) + 1, 1 << 62, (1 << 63) - 1, -(1 << 63), (1 << 64) - 1]
numbers = st.one_of(st.sampled_from(edges), st.integers(-3, 40))
frames = st.one_of(st.integers(-2, 3), st.sampled_from(edges))
shapes = st.lists(numbers, max_size=4).map(tuple) | st.just((1,) * 65)
plain = ["|u1", "<f8", "<c16", "O", "|S3", "|V0", "|V9", "<M8[ns]", "nonsense", "f8,O", "", "bfloat16", "{", "\ud800"]
records = ['{"base": "f8", "shape": [2]}', '{"fields": [["a", "f8", 0]], "itemsize": 8, "aligned": true}']
dtypes = st.sampled_from([*plain, *records])
modules = ["numpy", "numpy.f2py.__main__", "numpy.distutils", "builtins", "cupy.testing", "cupyx", "os", "antigravity"]
ends = ["x", "ValueError", "SystemExit", "KeyboardInterrupt", "BaseException", "ExceptionGroup", "UnicodeDecodeError"]
known_names = ["cupy.ndarray", "cupy.array", "cupy.cuda.memory.OutOfMemoryError", "cupy.random.Generator", "cupy", ".."]
kinds = st.builds("{}.{}".format, st.sampled_from(modules), st.sampled_from(ends)) | st.sampled_from(known_names)
kinds = kinds | st.text(max_size=8)
texts = st.text(max_size=8)
small = st.binary(max_size=40)
leaves = st.one_of(
    st.none(), st.booleans(), numbers, st.sampled_from([nan, inf, 0.5]), texts,
    st.builds(values.Ref, numbers), st.builds(values.Scalar, dtypes, small), st.builds(values.Bytes, small),
    st.builds(values.BigInt, st.sampled_from(["0x10", "-0xff", "", "zz", "f" * (1 << 21)])),
    st.builds(values.Buffer, frames, dtypes, shapes, small), st.builds(values.DType, dtypes),
    st.builds(values.Name, kinds), st.builds(values.Method, numbers, texts), st.builds(values.Callback, numbers),
    st.builds(values.ArrayInfo, numbers, shapes, shapes, dtypes, numbers, numbers),
    st.builds(values.ObjectInfo, numbers, kinds),
    st.builds(values.View, numbers, numbers, shapes, shapes, dtypes, texts),
)  # fmt: skip
anything = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: values.Tuple(tuple(items))),
        st.lists(inner, max_size=3).map(lambda items: values.List(tuple(items))),
        st.lists(st.tuples(inner, inner), max_size=2).map(lambda items: values.Dict(tuple(items))),
        st.builds(values.Slice, inner, inner, inner),
    ),
    max_leaves=6,
)
records_of_errors = st.builds(
    ErrorRecord, kinds, texts, texts, numbers, st.lists(numbers | texts | st.none(), max_size=3).map(tuple), texts
)
said = st.one_of(
    st.builds(wire.Reply, numbers, anything), st.builds(wire.Ack, numbers, numbers),
    st.builds(wire.Chunk, numbers, numbers), st.builds(wire.Failed, numbers, records_of_errors),
    st.builds(wire.Refused, texts, texts),
)  # fmt: skip
buffers = st.lists(small, max_size=2)
#: Ops that were sent before the executor speaks.
MOST_SENT = 20


@given(anything, buffers)
@often
def read_a_result(value: Any, frames: list[bytes]) -> None:
    try:
        make_array, make_object = partial(from_description, CLIENT), partial(object_from_description, CLIENT)
        Decoder(frames, {7: "an argument"}, make_array, make_object).decode(value)
    except ProtocolError:
        return
    counts["results"] += 1


@given(leaves, dtypes, buffers)
@often
def read_contents(value: Any, dtype: str, frames: list[bytes]) -> None:
    for read in (lambda: buffer_to_array(value, frames), lambda: inline_scalar(dtype, b"".join(frames))):
        try:
            read()
        except ProtocolError:
            continue
        counts["contents"] += 1


@given(records_of_errors)
@often
def hear_of_a_failure(record: ErrorRecord) -> None:
    error = errors.remote_exception(record)
    assert isinstance(error, Exception)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        errors.warn_again((WarningRecord(record.kind, record.message),))


@given(st.lists(st.tuples(said, buffers), max_size=6))
@often
def sort_what_comes_in(messages: list[tuple[Any, list[bytes]]]) -> None:
    journal: Journal[OpenBatch] = Journal()
    batch = OpenBatch(1)
    for _ in range(MOST_SENT):
        batch.add(wire.Op(".nothing", 0, ()), None, Cost(0.0, True))
    journal.append(batch)
    journal.note_sending(batch)
    inbox = Inbox(journal, Ahead(journal.marks))
    for number in (1, 7):
        inbox.expect(number)
    for message, frames in messages:
        try:
            inbox.note(message, list(frames))
        except ProtocolError:
            return
        marks = journal.marks
        assert marks.durable == marks.done <= marks.applied <= marks.taken <= MOST_SENT
    counts["messages"] += len(messages)


@given(said, st.lists(st.tuples(st.integers(0, 200), st.integers(0, 255)), max_size=4), st.integers(0, 200))
@often
def decode_what_was_spoilt(message: Any, flips: list[tuple[int, int]], length: int) -> None:
    try:
        data = bytearray(encode(message)[0])
    except UnicodeEncodeError:  # no peer can say this
        return
    for place, value in flips:
        data[place % len(data)] = value
    try:
        codec.decode([bytes(data[:length] if length < 50 else data)])
    except WireError:
        return
    counts["decoded"] += 1


if __name__ == "__main__":
    codec: Codec[wire.ToClient] = Codec(wire.ToClient)
    counts = dict.fromkeys(("results", "contents", "messages", "decoded"), 0)
    class_of("cupy.random.Generator")  # what the surface needs is there before
    errors.remote_exception(ErrorRecord("cupy.cuda.memory.OutOfMemoryError", ""))
    before = set(sys.modules)
    for attack in (read_a_result, read_contents, hear_of_a_failure, sort_what_comes_in, decode_what_was_spoilt):
        attack()
    own = ("kernelproxy.", "ml_dtypes", "hypothesis.")
    fresh = {name for name in set(sys.modules) - before if not name.startswith(own)}
    assert not fresh, f"imported for the executor: {sorted(fresh)}"
    assert all(counts.values()), counts
