"""What is recorded by its form is what is recorded without any: the same random calls both ways, op for op."""

from __future__ import annotations

import gc
import operator
import random
import warnings
from collections import Counter
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

from gpu_backend.devices import open_device
from gpu_backend.wire.codec import encode
from gpu_backend.wire.messages import Want
from kernelproxy import compiled
from kernelproxy.array import indexing
from kernelproxy.calls import repeats
from kernelproxy.calls.array_core import ArrayCore
from kernelproxy.client import Client
from kernelproxy.namespace.names import make
from kernelproxy.stream import forms
from kernelproxy.stream.forms import Forms
from tests.conformance.in_process import InProcess
from tests.cupy_names import CuPy

#: Numbers that are equal and not the same, or not equal to themselves, or large.
_NUMBERS = (
    "0", "1", "3", "-1", "0.0", "-0.0", "1.0", "True", "False", "nan", "float('nan')", "1e300", "2.5", "300", "-200",
    "2**63", "2**64 - 1", "2**64", "-2**63", "-2**63 - 1", "1j", "-0j", "np.float64(-0.0)", "np.float32(1)",
    "np.int8(1)", "np.bool_(True)", "np.float64(nan)", "None", "'C'",
)  # fmt: skip
_AXES = ("None", "0", "1", "-1", "7", "True", "0.0", "(0, 1)", "(1, 0)", "[0]", "(True,)", "()", "np.int64(0)")
_DTYPES = (
    "None", "float", "int", "bool", "complex", "'f'", "'i8'", "np.float32", "np.dtype('f4')", "np.dtype('>f4')",
    "np.dtype('i2')", "np.dtype('f4', metadata={'a': 1})", "'nonsense'", "str", "object",
)  # fmt: skip
_SHAPES = (
    "9", "(3, 4)", "[3, 4]", "(3, True)", "(3.0, 4)", "(12,)", "12", "-1", "(-1, 4)", "(2, -1)", "()", "(0,)", "(5, 7)",
    "np.int64(3)", "(np.int32(3), 4)", "None",
)  # fmt: skip
_ARRAYS = (
    "x", "y", "m", "t", "b", "k", "c", "w", "e", "sub", "m[1]", "m.T", "x[::-1]", "x[1:-1]", "x[:0]", "h", "late",
)  # fmt: skip
_OUTS = ("None", "x", "z", "m", "k", "(z,)", "(z, z)", "sub", "m[0]")
_KEYS = (
    "0", "-1", "99", "1:-1", "::2", "...", "None", "(1, 2)", "(1, -1)", "(0, slice(1, 3))", "True", "np.int64(1)",
    "b", "k", "(..., 0)", "()", "[0, 1]", "1.5", "slice(None, None, 0)",
)  # fmt: skip

#: What is called; names of pools above stand for one of them.
_CALLS = (
    "cp.sum(ARRAY)", "cp.sum(ARRAY, axis=AXIS)", "cp.sum(ARRAY, AXIS, DTYPE)", "ARRAY.sum()", "ARRAY.sum(axis=AXIS)",
    "ARRAY.max(keepdims=NUMBER, axis=AXIS)", "ARRAY.max(axis=AXIS, keepdims=NUMBER)", "ARRAY.sum(out=OUT)",
    "cp.sum(ARRAY, out=OUT, dtype=DTYPE)", "cp.sum(ARRAY, dtype=DTYPE, out=OUT)", "cp.argsort(ARRAY, AXIS)",
    "cp.exp(ARRAY)", "cp.exp(ARRAY, OUT)", "cp.exp(ARRAY, out=OUT)", "cp.sqrt(ARRAY, dtype=DTYPE)",
    "cp.maximum(ARRAY, ARRAY)", "cp.maximum(ARRAY, NUMBER)", "cp.add(ARRAY, NUMBER, out=OUT)",
    "cp.add(ARRAY, ARRAY, out=OUT, dtype=DTYPE)", "cp.divmod(ARRAY, NUMBER)", "cp.power(ARRAY, NUMBER, dtype=DTYPE)",
    "cp.where(b, ARRAY, NUMBER)", "cp.where(b, ARRAY, ARRAY)", "cp.where(ARRAY)", "cp.clip(ARRAY, NUMBER, NUMBER)",
    "cp.clip(ARRAY, a_min=NUMBER, a_max=NUMBER)", "cp.clip(ARRAY, a_max=NUMBER, a_min=NUMBER)",
    "ARRAY.clip(NUMBER, ARRAY)", "cp.zeros(SHAPE)", "cp.zeros(SHAPE, DTYPE)", "cp.zeros(shape=SHAPE, dtype=DTYPE)",
    "cp.zeros(dtype=DTYPE, shape=SHAPE)", "cp.ones(SHAPE, dtype=DTYPE, order='F')", "cp.full(SHAPE, NUMBER)",
    "cp.full(SHAPE, NUMBER, DTYPE)", "cp.full(SHAPE, ARRAY)", "cp.arange(NUMBER)", "cp.arange(0, 9, NUMBER)",
    "cp.zeros_like(ARRAY, dtype=DTYPE)", "cp.full_like(ARRAY, NUMBER)", "cp.linspace(NUMBER, NUMBER, 5)",
    "cp.reshape(ARRAY, SHAPE)", "ARRAY.reshape(SHAPE)", "ARRAY.reshape(SHAPE, order='F')", "cp.ravel(ARRAY)",
    "ARRAY.ravel('F')", "cp.transpose(ARRAY, AXIS)", "ARRAY.swapaxes(0, NUMBER)", "cp.expand_dims(ARRAY, AXIS)",
    "cp.squeeze(ARRAY, AXIS)", "cp.broadcast_to(ARRAY, SHAPE)", "cp.asarray(ARRAY)", "cp.array(ARRAY, DTYPE)",
    "cp.ascontiguousarray(ARRAY)", "ARRAY.astype(DTYPE)", "ARRAY.astype(DTYPE, copy=NUMBER)", "ARRAY.copy()",
    "ARRAY.view(DTYPE)", "ARRAY.fill(NUMBER)", "cp.concatenate([ARRAY, ARRAY])",
    "cp.concatenate((ARRAY, x), axis=AXIS)",
    "cp.stack([ARRAY, ARRAY], AXIS)", "cp.pad(x, NUMBER)", "cp.pad(m, ((1, 1), (0, NUMBER)))", "cp.roll(ARRAY, NUMBER)",
    "cp.dot(ARRAY, ARRAY)", "ARRAY @ ARRAY", "cp.linalg.norm(ARRAY)", "cp.take(ARRAY, k, axis=AXIS)", "cp.flip(ARRAY)",
    "cp.copyto(OUT, ARRAY)", "cp.copyto(z, NUMBER, where=b)", "cp.einsum('i,i->', ARRAY, ARRAY)", "cp.modf(ARRAY)",
    "cp.split(x, 2)", "cp.nan_to_num(ARRAY, nan=NUMBER)", "cp.nope(ARRAY)", "ARRAY.sum(nope=1)", "cp.sum()",
    "cp.linalg.inv(cp.eye(3))", "ARRAY + ARRAY", "ARRAY * NUMBER", "ARRAY[KEY]", "put(ARRAY, KEY, NUMBER)",
    "put(ARRAY, KEY, ARRAY)", "keep(ARRAY + 1.0)", "keep(cp.zeros(12))", "kept.clear()", "stream(0)", "stream(1)",
    "x is cp.sum(x, out=x[:0])", "cp.isnan(out=z, a=ARRAY)",
)  # fmt: skip
_POOLS = {
    "ARRAY": _ARRAYS, "NUMBER": _NUMBERS, "AXIS": _AXES, "DTYPE": _DTYPES, "SHAPE": _SHAPES, "OUT": _OUTS, "KEY": _KEYS
}  # fmt: skip


def _is_call(key: tuple[Any, ...]) -> bool:
    """Tell whether a form is kept under what a call is known by; ufuncs of arrays have forms of their own."""
    return type(key[0]) is int


class _NoForms(Forms):
    """Finds no call again: all go the general way."""

    def get(self, key: Any, default: Any = None) -> Any:
        return None if _is_call(key) else super().get(key, default)


class _Counted(Forms):
    """Counts the calls, by name, that were found again."""

    found: dict[object, int]

    def get(self, key: Any, default: Any = None) -> Any:
        form = super().get(key, default)
        if form is not None and _is_call(key):
            self.found[key[1]] = self.found.get(key[1], 0) + 1
        return form


class _Heard(InProcess):
    """Keeps the ops that arrive, as they travel."""

    def __init__(self) -> None:
        self.ops: list[Any] = []
        super().__init__(open_device("cpu"))

    def work(self, most: int) -> None:
        batch = self.talk.front()
        if batch is not None:
            self.ops += batch.ops[batch.next :]
        super().work(most)


class _Run(NamedTuple):
    """What calls gave, the ops that they were, and which of them were found again."""

    gave: list[object]
    ops: list[object]
    found: dict[object, int]


def _calls(seed: int, count: int, kinds: tuple[str, ...] = _CALLS) -> list[str]:
    """Return random calls, many of them several times."""
    chance = random.Random(seed)
    made: list[str] = []
    for _ in range(count):
        call = chance.choice(kinds)
        for name, pool in _POOLS.items():
            while name in call:
                call = call.replace(name, chance.choice(pool), 1)
        made.append(call)
    return [chance.choice(made) for _ in range(4 * count)]


def _scope() -> dict[str, Any]:
    cp = CuPy()
    array_class = make("cupy.ndarray")

    class Sub(array_class):  # type: ignore[misc, valid-type]
        def __array_finalize__(self, obj: object) -> None:
            finalized.append(type(obj).__name__)

    finalized: list[str] = []
    kept: list[Any] = []
    streams = [make("cupy.cuda.Stream")(non_blocking=True), make("cupy.cuda.Stream").null]

    def put(target: Any, key: Any, value: Any) -> None:
        target[key] = value

    rows = np.arange(12.0)
    return {
        "cp": cp, "np": np, "op": operator, "nan": np.nan, "put": put, "kept": kept,
        "keep": kept.append, "stream": lambda number: streams[number].use(), "finalized": finalized,
        "x": cp.asarray(rows), "y": cp.ones(12), "z": cp.zeros(12), "m": cp.asarray(rows.reshape(3, 4)), "h": rows,
        "t": cp.asarray(rows.reshape(4, 3)), "b": cp.asarray(rows > 3), "k": cp.asarray(np.array([2, 0, 1])),
        "c": cp.asarray(rows * 1j), "w": cp.asarray(rows.astype("f4")), "e": cp.zeros(()),
        "sub": cp.asarray(rows).view(Sub), "late": cp.nonzero(cp.asarray(rows > 5))[0],
    }  # fmt: skip


def _shown(made: Any) -> object:
    """Return what is to be the same of a result, without asking for its contents."""
    if isinstance(made, ArrayCore):
        layout = made._layout
        # To look at a layout that is only known later would ask for it, and change what is recorded.
        return type(made).__name__, repr(layout) if type(layout).__name__ == "Layout" else "later", repr(made._ref)
    if isinstance(made, (tuple, list)):
        return type(made).__name__, [_shown(one) for one in made]
    return repr(made) if not hasattr(made, "_wire_value") else type(made).__name__


def _called(call: str, scope: dict[str, Any]) -> object:
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            shown = _shown(eval(call, scope))
        except Exception as error:  # whatever it is, it must be the same both ways
            shown = type(error).__qualname__, str(error)
    return call, shown, [(one.category, str(one.message)) for one in warned]


def _run(calls: list[str], are_found: bool) -> _Run:
    with pytest.MonkeyPatch.context() as patch:
        if not are_found:
            patch.setattr(indexing, "fills_quietly", lambda value, dtype: False)
        return _run_with(calls, _Counted if are_found else _NoForms)


def _run_with(calls: list[str], table: type[Forms]) -> _Run:
    executor, found = _Heard(), {}
    pipeline: Any = executor.pipeline()
    pipeline.forms = table(pipeline.ahead.costs)
    pipeline.forms.found = found
    with Client() as client:
        client.adopt(SimpleNamespace(pipeline=pipeline))  # type: ignore[arg-type]
        scope = _scope()
        gave = [_called(call, scope) for call in calls]
        gave.append(scope["finalized"])
        gave += [repr(scope[name].get()) for name in ("x", "y", "z", "m", "t", "b", "k", "c", "w", "e", "sub")]
        pipeline.call(".nothing", (), Want.DESCRIPTION)
        scope.clear()
        client.adopt(None)
    made, device = [encode(op) for op in executor.ops], executor.device
    del executor, pipeline, client
    gc.collect()  # an error for want of memory says how much this process has, and keeps: the next run is told the same
    device.free_unused()
    return _Run(gave, made, found)


@pytest.fixture(scope="module", autouse=True)
def small_heap() -> Iterator[None]:
    """Leave what the tests before have made out of the many collections here: in the whole suite they took minutes."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture
def no_collector() -> Iterator[None]:
    """What is dropped is dropped where it is dropped both times."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("seed", range(12))
def test_the_same_is_recorded_with_forms_as_without(seed: int, no_collector: None) -> None:
    calls = _calls(seed, 150)
    with_forms, without = _run(calls, True), _run(calls, False)
    assert with_forms.gave == without.gave
    assert with_forms.ops == without.ops
    assert len(with_forms.found) >= 10  # else nothing was compared


#: What operators and indices are tried with beside the calls above: they have compiled ways.
_OPERATIONS = (
    *(f"ARRAY {sign} ARRAY" for sign in ("+", "-", "*", "/", "//", "%", "**", "<", "==", "!=", "&", "<<", "@")),
    *(f"ARRAY {sign} NUMBER" for sign in ("+", "*", "/", "**", ">=", "==", "|", ">>")),
    *(f"NUMBER {sign} ARRAY" for sign in ("-", "*", "/", "%", "<=", "^", "**")),
    "-ARRAY", "abs(ARRAY)", "~ARRAY", "ARRAY[KEY]", "ARRAY[KEY][KEY]", "put(ARRAY, KEY, ARRAY[KEY])",
    "put(x, slice(1, -1), x[1:-1])", "put(ARRAY, KEY, NUMBER)", "put(ARRAY, KEY, ARRAY)", "keep(ARRAY + NUMBER)",
    "kept.clear()", "stream(0)", "stream(1)", "op.iadd(ARRAY, ARRAY)", "op.imul(ARRAY, NUMBER)", "op.isub(x, y)",
    "op.itruediv(z, 2.0)", "0.5 * (x[:-2] + x[2:])", "cp.sin(ARRAY)", "ARRAY.sum()", "setattr(z, 'shape', (12,))",
)  # fmt: skip


@pytest.mark.skipif(not compiled.is_compiled, reason="nothing is compiled here")
@pytest.mark.parametrize("seed", range(16))
def test_the_same_is_recorded_by_compiled_ways_as_by_those_in_python(seed: int, no_collector: None) -> None:
    has_streams = seed < 4  # then all goes the Python ways, once there are some
    calls = _calls(seed, 200, _OPERATIONS if seed % 2 else _CALLS)
    calls = [call for call in calls if has_streams or not call.startswith("stream(")]
    quick, looked_for = _looked_for(calls)
    with compiled.used(False):
        pure, all_looked_for = _looked_for(calls)
    assert quick.gave == pure.gave
    assert quick.ops == pure.ops
    assert has_streams or looked_for < 0.8 * all_looked_for  # else nothing was compared


def _looked_for(calls: list[str]) -> tuple[_Run, int]:
    """Return what came of ``calls``, and how many of them were looked for in Python."""
    counted: list[str] = []

    def known_by(qualname: str, *rest: Any) -> Any:
        counted.append(qualname)
        return whole(qualname, *rest)

    whole = repeats.known_by
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(repeats, "known_by", known_by)
        return _run_with(calls, Forms), len(counted)


#: Calls that take any number.
_OF_NUMBERS = (
    "cp.full(9, {})", "cp.full((2, 2), {}, 'f')", "cp.where(b, x, {})", "cp.clip(x, {}, None)", "cp.maximum(x, {})",
    "cp.add(x, {}, out=z)", "cp.zeros({})", "cp.zeros(({}, 3))", "cp.zeros([3, {}])", "cp.sum(x, axis={})",
    "x.fill({})", "k.fill({})", "m.max(axis=({},))", "m.max(keepdims={})", "put(x, 2, {})", "put(k, slice(1, 2), {})",
    "put(m, (1, {}), 2.0)", "put(c, 1, {})", "put(w, ..., {})", "put(b, 1, {})", "put(sub, 1, {})", "m[{}, 1]",
    "cp.arange({})", "cp.pad(m, ((1, 1), (0, {})))",
)  # fmt: skip


@pytest.mark.parametrize("call", _OF_NUMBERS)
def test_numbers_that_are_equal_and_not_the_same_are_told_apart(call: str, no_collector: None) -> None:
    numbers = [number for number in _NUMBERS if len(number) < 6] * 2  # a shape of 2**63 is no use
    calls = [call.format(number) for number in (*numbers, *reversed(numbers))]
    with_forms, without = _run(calls, True), _run(calls, False)
    assert with_forms.gave == without.gave
    assert with_forms.ops == without.ops


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("m.max(keepdims=1, axis=0)", "m.max(axis=1, keepdims=0)"), ("m.sum(axis=(0,))", "m.sum(axis=[0])"),
        ("cp.zeros((3, 4))", "cp.zeros(((3, 4),))"), ("cp.zeros((3, 4), 'f')", "cp.zeros(3, 4, 'f')"),
        ("cp.clip(x, 1, None)", "cp.clip(x, None, 1)"), ("cp.sum(m, 0)", "cp.sum(m, axis=0)"),
        ("cp.add(x, y, out=z)", "cp.add(x, y, z)"), ("cp.add(x, y, out=(z,))", "cp.add(x, y, out=[z])"),
        ("cp.add(x, y, out=(z,))", "cp.add(x, y, out=z)"),
        ("cp.zeros(3, 'f')", "cp.zeros(3, np.dtype('f4'))"), ("cp.zeros(3, np.float32)", "cp.zeros(3, np.dtype('f4'))"),
        ("cp.zeros(3, float)", "cp.zeros(3, np.float64)"), ("cp.zeros(3, int)", "cp.zeros(3, bool)"),
        ("cp.concatenate([x, y])", "cp.concatenate((x, y))"), ("cp.stack([x, y])", "cp.stack([y, x])"),
        ("keep(cp.sqrt(x, dtype='d'))", "kept.clear()"), ("cp.ascontiguousarray(m)", "cp.ascontiguousarray(m.T)"),
        ("cp.exp(x, out=sub)", "cp.exp(x, out=z)"), ("cp.sum(x)", "cp.sum(sub)"), ("cp.ravel(m)", "cp.ravel(m.T)"),
    ],
)  # fmt: skip
def test_calls_that_are_given_nearly_the_same_are_told_apart(one: str, other: str, no_collector: None) -> None:
    calls = [one, other, one, other, other, one, "stream(0)", one, other, "stream(1)", one, other]
    with_forms, without = _run(calls, True), _run(calls, False)
    assert with_forms.gave == without.gave
    assert with_forms.ops == without.ops
    assert with_forms.found


def _recorded(*calls: str) -> Any:
    """Return a pipeline in which ``calls`` were recorded and not sent."""
    pipeline: Any = _Heard().pipeline()
    with Client() as client:
        client.adopt(SimpleNamespace(pipeline=pipeline))  # type: ignore[arg-type]
        scope = _scope()
        pipeline.flush()
        pipeline.flush = lambda: None
        for call in calls:
            exec(compile(call, "the user's", "exec"), scope)
        scope.clear()
        client.adopt(None)
    return pipeline


def _names(pipeline: Any) -> set[object]:
    """Return the names of calls that will be found again."""
    return {key[1] for key in pipeline.forms if _is_call(key)}


def test_the_line_of_a_call_that_is_found_again_is_the_users() -> None:
    call = "cp.sum(x); x.sum(); x[2] = 1.0; z[1:-1] = x[1:-1]; cp.add(x, y, out=z); cp.zeros(3)"
    pipeline = _recorded(f"for _ in range(3): {call}")
    with pipeline.recording:
        sites = list(pipeline.open_batch.sites)
    assert len(sites) >= 18
    assert {site.code.co_filename for site in sites[-18:]} == {"the user's"}


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forms, "_MOST_FORMS", 50)
    pipeline = _recorded("for n in range(200): cp.zeros(n); cp.full(3, n * 0.5); cp.full(3, float('nan'))")
    assert 0 < len(pipeline.forms) <= 50


@pytest.mark.parametrize("are_used", [False, True])
def test_numbers_that_are_only_put_somewhere_are_no_new_calls(are_used: bool) -> None:
    call = "cp.full(9, {0}); cp.where(b, x, {0}); cp.where(b, {0}, 2.0); cp.clip(w, -{0}, {0}); x.clip({0}, {0})"
    with compiled.used(are_used):
        pipeline = _recorded(call.format("0.5"), f"for i in range(50): {call.format('(i * 1.5)')}")
    remembered = Counter(key[1] for key in pipeline.forms if _is_call(key))
    known = {"cupy.full": 1, "cupy.where": 2, "cupy.clip": 1, "cupy.ndarray.clip": 1}
    assert {name: remembered[name] for name in known} == known


def test_long_arguments_are_not_kept() -> None:
    assert _names(_recorded("cp.full(3, 1.0); cp.pad(m, ((1, 1), (2, 2)))")) >= {"cupy.full", "cupy.pad"}
    assert "cupy.concatenate" in _names(_recorded("cp.concatenate([x] * 32)"))
    assert "cupy.concatenate" not in _names(_recorded("cp.concatenate([x] * 33)"))
    assert "cupy.einsum" in _names(_recorded("cp.einsum('i,i->', x, y)"))
    assert "cupy.einsum" not in _names(_recorded("cp.einsum('i,i->' + ' ' * 200, x, y)"))


def test_a_setting_on_which_results_depend_is_its_sessions_own() -> None:
    calls = ["cp.linalg.solve(cp.ones((2, 3, 3)) + cp.eye(3), cp.ones((2, 3, 1)))"] * 3
    chosen = "cp.cublas.set_batched_gesv_limit(2)"
    assert _run([*calls, chosen, *calls], True).found.get("cupy.linalg.solve") == 2
    assert _run(calls, True).found.get("cupy.linalg.solve") == 2, "another session, of the same process"
