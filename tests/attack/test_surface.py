"""Ways from an object that an op gives to all of Python, each of which once went on: none does, and nothing stays."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpu_backend.devices import open_device
from gpu_backend.devices.base import Device
from gpu_backend.executor.answer import Answer
from gpu_backend.executor.conversation import QueuedBatch
from gpu_backend.executor.program.run import OpStream
from gpu_backend.wire.messages import Op, Want
from gpu_backend.wire.values import Buffer, Callback, Dict, List, Method, Name, Ref, Tuple, Value
from tests.integration.notebook_pool import cpu_pool

ARRAY, SPARSE, EVENT, SOLVER, TASK, KERNEL, WRITER = range(1, 8)
UNDESCRIBED = "cannot stay in the executor or leave it: no class of that kind is described"
NO_ATTRIBUTES = "has no attributes here"
NOT_CALLED = "cannot be called across the wire"
NO_MEMBER = "has no public (attribute|method)"
LOCAL = "works on the files or addresses of one process; it runs in the notebook"
NOT_BY_NAME = "is asked of an object, not by its name"
TAKES_A_FUNCTION = "is not served: it takes a function of Python"
TAKES_A_PATH = "is not served: it takes the path of a file"
NOTHING_TO_CALL = "is nothing that can be called"
NOT_PUBLIC = "is not a public name of CuPy"
WRONG_KIND = "This takes a"
NO_HANDLE = "0x400000 is no .* of this session: give"
WRONG_OBJECT = "takes a cupy.*, and no "
_RUNTIME = "cupy.cuda.runtime"
FUNCTION, MODULE, ONE = Name("cupy.sum"), Name("cupy.linalg"), Tuple((1,))


class Executor:
    """An op stream that keeps an object of each kind under the handles above."""

    def __init__(self, device: Device) -> None:
        self.stream = OpStream(device)
        self._seq = 0
        square = Buffer(-1, "<f8", (2, 2), np.eye(2).tobytes())
        text = 'extern "C" __global__ void k(double* x) { x[0] = 1; }'
        for op in (
            Op("cupy.array", ARRAY, (square,)),
            Op("cupyx.scipy.sparse.csc_matrix", SPARSE, (Ref(ARRAY),)),
            Op("cupy.cuda.Event", EVENT, ()),
            Op("cupyx.scipy.sparse.linalg.factorized", SOLVER, (Ref(SPARSE),)),
            Op(".begin", TASK, ("cupy.apply_along_axis", Callback(1), 0, Ref(ARRAY)), None, Want.DESCRIPTION),
            Op("cupy.RawKernel", KERNEL, (text, "k")),
        ):
            answer = self.say(op)
            assert answer is None or answer.error is None, (op, answer)

    def say(self, op: Op) -> Answer | None:
        """Run one op, in a batch of its own."""
        self._seq += 1
        batch = QueuedBatch(self._seq, (op,), 0, ())
        answer: Answer | None = None
        while batch.next < 1 and answer is None:
            batch.next, answer = self.stream.run(batch, float("inf"))
        return answer


DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


@pytest.fixture(scope="module", params=DEVICES)
def executor(request: pytest.FixtureRequest) -> Executor:
    return Executor(open_device(request.param))


def op(name: str, *args: Value, **other: Any) -> Op:
    return Op(name, 100, args, **other)


#: What is said, and words of the sentence that it is refused with.
REFUSED: dict[str, tuple[Op, str]] = {
    # What is kept: no class that nobody has described, in whatever it is wrapped.
    "a function": (op(".same", FUNCTION), UNDESCRIBED),
    "a function in a tuple": (op(".same", Tuple((1, FUNCTION))), UNDESCRIBED),
    "a function in a list in a tuple": (op(".same", Tuple((List((FUNCTION,)),))), UNDESCRIBED),
    "a function in a dictionary": (op(".same", Dict((("a", FUNCTION),))), UNDESCRIBED),
    "a function of the notebook": (op(".same", Callback(1)), UNDESCRIBED),
    "a module": (op(".same", MODULE), NOTHING_TO_CALL),
    "a property": (op(".same", Name("cupy.ndarray.flags")), NOTHING_TO_CALL),
    "a generator's parts": (op(".getattr", Name("cupyx.scipy.sparse.csr_matrix"), "gi_frame"), NO_ATTRIBUTES),
    "what a call that calls back gives": (op(".begin", ".same", FUNCTION), UNDESCRIBED),
    "an answer": (op(".same", FUNCTION, want=Want.DESCRIPTION), UNDESCRIBED),
    "an answer in a list": (op(".same", List((Ref(ARRAY), FUNCTION)), want=Want.DESCRIPTION), UNDESCRIBED),
    "an answer by value": (op(".same", FUNCTION, want=Want.CONTENTS), UNDESCRIBED),
    "an argument of the notebook's function": (
        op(".begin", "cupy.apply_along_axis", Callback(1), 0, Ref(ARRAY), FUNCTION, want=Want.DESCRIPTION),
        UNDESCRIBED,
    ),
    # What is read, set and called: the members of the object's own class.
    "globals of a function": (op(".getattr", FUNCTION, "__globals__"), NO_ATTRIBUTES),
    "attributes of a class": (op(".getattr", Name("cupy.cuda.Stream"), "null"), NO_ATTRIBUTES),
    "attributes of a text": (op(".method", "{0.__class__}", "format", Ref(SPARSE)), NO_ATTRIBUTES),
    "attributes of a number": (op(".getattr", 1, "real"), NO_ATTRIBUTES),
    "attributes of a list": (op(".method", List(()), "append", 1), NO_ATTRIBUTES),
    "the class of an object": (op(".getattr", Ref(SPARSE), "__class__"), NO_MEMBER),
    "the dictionary of an object": (op(".getattr", Ref(EVENT), "__dict__"), NO_MEMBER),
    "private parts": (op(".getattr", Ref(SPARSE), "_shape"), NO_MEMBER),
    "private methods": (op(".method", Ref(SPARSE), "_swap", Tuple((1, 2))), NO_MEMBER),
    "a private method as a value": (op(".same", Method(SPARSE, "_swap")), NO_MEMBER),
    "a pickle of an object": (op(".method", Ref(SPARSE), "__reduce_ex__", 2), NO_MEMBER),
    "what a method belongs to": (op(".getattr", Ref(SOLVER), "__self__"), NO_MEMBER),
    "the function of a method": (op(".getattr", Ref(SOLVER), "__func__"), NO_MEMBER),
    "parts of a call": (op(".getattr", Ref(TASK), "_channel"), NO_MEMBER),
    "methods of a call": (op(".method", Ref(TASK), "advance"), NO_MEMBER),
    "setting a class": (op(".setattr", Ref(SPARSE), "__class__", FUNCTION), "has no attribute '__class__' that a note"),
    "setting a pointer": (op(".setattr", Ref(EVENT), "ptr", 1), "has no attribute 'ptr' that a notebook may set"),
    "setting what is not there": (op(".setattr", Ref(SPARSE), "nothing", 1), "that a notebook may set"),
    "calling a function as an object": (op(".call", FUNCTION, Ref(ARRAY)), NOT_CALLED),
    "calling a class as an object": (op(".call", Name("cupy.cuda.Event")), NOT_CALLED),
    "calling what is no function": (op(".call", Ref(SPARSE)), NOT_CALLED),
    "launching what is no kernel": (op(".launch", FUNCTION, ONE, ONE, Tuple(()), Tuple(())), NOT_CALLED),
    "codes of what is no kernel": (op(".cached_codes", Ref(SPARSE)), NO_MEMBER),
    "compiling what is no kernel": (op(".compile", Ref(SPARSE), False), NO_MEMBER),
    "waiting for what is no event": (op(".wait_event", Ref(SPARSE)), WRONG_KIND),
    "writing into what is no array": (op(".write", Ref(SPARSE), 0, Buffer(-1, "|u1", (1,), b"1")), WRONG_KIND),
    "the layout of what is no array": (op(".layout", Ref(SPARSE)), WRONG_KIND),
    "a window on what is no array": (op(".window", Ref(SPARSE)), WRONG_KIND),
    "a stream that is none": (op(".same", 1, stream=SPARSE), WRONG_KIND),
    # Numbers for handles of the driver, which it would read; and objects whose `ptr` is something else.
    "a stream that is a number": (op(f"{_RUNTIME}.streamSynchronize", 0x400000), NO_HANDLE),
    "flags of a number": (op(f"{_RUNTIME}.streamGetFlags", 0x400000), NO_HANDLE),
    "the end of a number": (op(f"{_RUNTIME}.streamDestroy", 0x400000), NO_HANDLE),
    "an event that is a number": (op(f"{_RUNTIME}.eventQuery", 0x400000), NO_HANDLE),
    "an event on a number": (op(f"{_RUNTIME}.streamWaitEvent", 0, 0x400000), NO_HANDLE),
    "the end of the default stream": (op(f"{_RUNTIME}.streamDestroy", 0), "belongs to an object of this session"),
    "a method of another's object": (op("cupy.cuda.Event.synchronize", Ref(SPARSE)), WRONG_OBJECT),
    "an event for a stream": (op(".method", Ref(EVENT), "record", Ref(EVENT)), WRONG_OBJECT),
    "an array for a stream": (op(".method", Ref(EVENT), "record", kwargs={"stream": Ref(ARRAY)}), WRONG_OBJECT),
    "an array for an event": (op("cupy.cuda.get_elapsed_time", Ref(ARRAY), Ref(EVENT)), WRONG_OBJECT),
    "a stream of a launch": (
        op(".launch", Ref(KERNEL), ONE, ONE, Tuple(()), Tuple(()), kwargs={"stream": Ref(EVENT)}), WRONG_OBJECT,
    ),
    # Arrays: their methods go by name.
    "writing a file": (op(".method", Ref(ARRAY), "tofile", "stolen"), LOCAL),
    "writing a pickle": (op(".method", Ref(ARRAY), "dump", "stolen"), LOCAL),
    "writing a file by a method as a value": (op(".same", Method(ARRAY, "tofile")), LOCAL),
    "reading the writer of files": (op(".getattr", Ref(ARRAY), "tofile"), LOCAL),
    "a pickle of an array": (op(".method", Ref(ARRAY), "__reduce__"), NOT_BY_NAME),
    "an array's private parts": (op(".method", Ref(ARRAY), "_astype", 1), NOT_BY_NAME),
    # Names: special methods, what takes a function by its name, and NumPy's own.
    "a state of one's own": (op("cupy.RawKernel.__setstate__", Ref(KERNEL), Dict(())), NOT_BY_NAME),
    "a pickle of a ufunc": (op("cupy.add.__reduce__", Name("cupy.add")), NOT_BY_NAME),
    "a function found by a name of one's own": (
        op("cupy.ndarray.__array_function__", Ref(ARRAY), Ref(KERNEL)),
        NOT_BY_NAME,
    ),
    "a ufunc found by a name of one's own": (op("cupy.ndarray.__array_ufunc__", Ref(ARRAY), Ref(KERNEL)), NOT_BY_NAME),
    "tracing a function": (op("cupy.fuse", FUNCTION), TAKES_A_FUNCTION),
    "translating a function": (op("cupy.vectorize", FUNCTION), TAKES_A_FUNCTION),
    "unpickling what lies somewhere": (op("cupyx.optimizing.optimize"), TAKES_A_PATH),
    "a reader of files": (op("cupy.DataSource"), TAKES_A_PATH),
}  # fmt: skip


@pytest.mark.parametrize("way", REFUSED)
def test_a_way_is_refused_in_one_sentence_and_nothing_stays(executor: Executor, way: str) -> None:
    said, sentence = REFUSED[way]
    before = dict(executor.stream.heap.objects)
    answer = executor.say(said)
    assert answer is not None
    assert answer.error is not None
    assert re.search(sentence, answer.error.message), answer.error.message
    assert executor.stream.heap.objects == before


def test_a_generator_of_an_object_is_told_item_by_item_and_never_kept(executor: Executor) -> None:
    said = op(".method", Ref(SPARSE), "__iter__")
    kept = executor.say(said)
    assert kept is not None
    assert kept.error is not None
    assert UNDESCRIBED in kept.error.message


#: Of a GPU alone: what ended the process that asked the driver about them.
NUMBERS_ON_A_GPU = {
    "cupy.cuda.driver.funcGetAttribute": (0, 0x400000),
    "cupy.cuda.driver.funcSetAttribute": (0x400000, 8, 0),
    "cupy.cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor": (0x400000, 128, 0),
    "cupy.cuda.driver.occupancyMaxPotentialBlockSize": (0x400000, 0, 0),
    "cupy.cuda.driver.streamGetCtx": (0x400000,),
    f"{_RUNTIME}.graphLaunch": (0x400000, 0),
    f"{_RUNTIME}.graphInstantiate": (0x400000,),
    f"{_RUNTIME}.graphDestroy": (0x400000,),
}


@pytest.mark.gpu
@pytest.mark.parametrize("name", NUMBERS_ON_A_GPU)
def test_a_number_does_not_reach_the_driver(name: str) -> None:
    answer = Executor(open_device("cuda")).say(op(name, *NUMBERS_ON_A_GPU[name]))
    assert answer is not None
    assert answer.error is not None
    assert re.search(NO_HANDLE, answer.error.message)


def test_handles_that_the_session_was_given_are_taken_until_they_are_gone(executor: Executor) -> None:
    def told(name: str, *args: Value) -> Any:
        answer = executor.say(Op(name, 0, args, want=Want.CONTENTS))
        assert answer is not None
        return answer.value if answer.error is None else answer.error.message

    assert executor.say(Op("cupy.cuda.Stream", 300, ())) is None
    of_object, own = told(".getattr", Ref(300), "ptr"), told(f"{_RUNTIME}.streamCreate")
    event = told(".getattr", Ref(EVENT), "ptr")
    for stream in (of_object, own):
        assert told(f"{_RUNTIME}.eventRecord", event, stream) is None
        assert told(f"{_RUNTIME}.streamWaitEvent", stream, event) is None
        assert told(f"{_RUNTIME}.streamQuery", stream) in (0, 600)
        assert told(f"{_RUNTIME}.streamSynchronize", stream) is None
    assert "belongs to an object" in told(f"{_RUNTIME}.streamDestroy", of_object)
    assert told(f"{_RUNTIME}.streamDestroy", own) is None
    executor.say(Op(".nothing", 0, (), drop=(300,)))
    for stream in (of_object, own):
        assert f"{stream:#x} is no stream of this session" in told(f"{_RUNTIME}.streamQuery", stream)


def test_six_ops_do_not_lead_to_eval(executor: Executor) -> None:
    """Each later op is said as well: what the first ones failed to keep is not there."""
    chain: list[Callable[[int], Op]] = [
        lambda out: Op("cupy.cuda.profile", out, ()),
        lambda out: Op(".getattr", out, (Ref(out - 1), "gen")),
        lambda out: Op(".getattr", out, (Ref(out - 1), "gi_frame")),
        lambda out: Op(".getattr", out, (Ref(out - 1), "f_builtins")),
        lambda out: Op(".method", out, (Ref(out - 1), "get", "eval")),
        lambda out: Op(".call", out, (Ref(out - 1), "1 + 1"), None, Want.CONTENTS),
    ]
    answers = [executor.say(make(200 + place)) for place, make in enumerate(chain)]
    errors = [answer.error.message if answer is not None and answer.error else "" for answer in answers]
    assert answers[0] is None, "cupy.cuda.profile() itself is served: it can be entered and left"
    assert all(errors[1:])
    assert re.search(NO_MEMBER, errors[1])
    assert executor.stream.heap.objects.keys().isdisjoint(range(201, 206))


OVER_THE_WIRE = """
import cupy

from gpu_backend.wire.messages import Want
from gpu_backend.wire.values import Name, Ref
from kernelproxy.session.session import pipeline

def kept(name, *args):
    handle = pipeline().record(name, args, 1, None, 0)
    try:
        pipeline().call(".same", (Ref(handle),), Want.CONTENTS)
        print("kept")
    except Exception as error:
        print(error)
    return Ref(handle)

array = Ref(pipeline().record("cupy.arange", (4,), 1, None, 0))
square = Ref(pipeline().record("cupy.eye", (4,), 1, None, 0))
sparse = Ref(pipeline().record("cupyx.scipy.sparse.csr_matrix", (square,), 1, None, 0))
rows = kept(".method", sparse, "__iter__")
frame = kept(".getattr", rows, "gi_frame")
names = kept(".getattr", frame, "f_builtins")
door = kept(".method", names, "get", "eval")
kept(".call", door, "open('stolen', 'w')")
kept(".method", array, "tofile", "stolen")
kept(".same", Name("cupy.sum"))
with cupy.cuda.profile():
    print(pipeline().call("cupy.sum", (array,), Want.CONTENTS).value.data)
"""


def test_an_executor_of_a_pool_refuses_them_and_goes_on(tmp_path: Path) -> None:
    program = tmp_path / "hostile.py"
    program.write_text(OVER_THE_WIRE)
    with cpu_pool(tmp_path / "pool"):
        ran = subprocess.run(
            [sys.executable, "-m", "workbench", "run", str(program)],
            capture_output=True, text=True, timeout=200, check=False,
        )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    *refusals, last = ran.stdout.splitlines()
    assert "kept" not in refusals
    assert [UNDESCRIBED in one for one in refusals] == [True, True, True, True, True, False, True]
    assert LOCAL in refusals[5]
    assert last == repr(np.int64(6).tobytes())
    assert not list(tmp_path.rglob("stolen"))
