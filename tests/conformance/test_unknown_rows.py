"""Ops on arrays whose length nobody knows are found again, and do all that they do when they are proved anew.

Random programs go three ways: by the compiled core, by Python, and by Python that finds no such op again.
"""

from __future__ import annotations

import gc
import operator
import random
import warnings
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gpu_backend.devices import open_device
from gpu_backend.opstream.layout import Layout, SomeRows
from gpu_backend.opstream.proof.ufuncs import rule_for
from gpu_backend.wire.codec import encode
from gpu_backend.wire.messages import Want
from kernelproxy import compiled
from kernelproxy.calls import selections, stores
from kernelproxy.calls.array_core import ArrayCore
from kernelproxy.calls.later_layout import LaterLayout, Rows
from kernelproxy.client import Client
from kernelproxy.mirror.host_mirror import HostMirror, Mode
from kernelproxy.stream.forms import Forms
from tests.conformance.in_process import InProcess
from tests.cupy_names import CuPy

#: What masks choose, what is made of that, and some arrays of known lengths.
_ROWS = (
    "x[b]", "x[b]", "y[b]", "x[a]", "w[b]", "k[b]", "c[b]", "b[b]", "m[r]", "p[r]", "u", "v", "x[b] * 2.0", "u + v",
    "cp.flatnonzero(b)", "cp.nonzero(a)[0]", "m[r].sum(axis=1)", "m[1:][r[1:]]", "kept[-1]", "x", "m[0]", "e", "x[:0]",
)  # fmt: skip
_NUMBERS = ("2", "2.0", "-0.0", "True", "300", "-1", "1e300", "2j", "np.float32(1)", "np.int8(3)", "nan", "2**63")
_MASKS = ("b", "b", "a", "r")
_AXES = ("None", "0", "1", "-1", "(0,)", "True")
_CALLS = (
    *(f"ROWS {sign} ROWS" for sign in ("+", "-", "*", "/", "**", "<", "==", "&", "<<", "@")),
    *(f"ROWS {sign} NUMBER" for sign in ("+", "*", "/", "**", ">", "==", "|", ">>")),
    *(f"NUMBER {sign} ROWS" for sign in ("-", "*", "/", "<=", "**")), "-ROWS", "~ROWS", "cp.sin(ROWS)",
    "cp.maximum(ROWS, ROWS)", "cp.hypot(ROWS, NUMBER)", "cp.add(ROWS, ROWS, u)", "cp.sin(ROWS, out=v)", "ROWS.sum()",
    "ROWS.sum(axis=AXIS)", "cp.mean(ROWS, AXIS)", "ROWS.std()", "ROWS.max()", "ROWS.astype('f4')",
    "ROWS.astype(np.dtype('i8'))", "ROWS.copy()", "cp.clip(ROWS, NUMBER, NUMBER)", "cp.sort(ROWS)",
    "cp.where(ROWS > 0, ROWS, NUMBER)", "cp.where(ROWS > 0, ROWS, ROWS)", "cp.cumsum(ROWS)", "cp.nan_to_num(ROWS)",
    "cp.dot(ROWS, ROWS)", "cp.concatenate([ROWS, ROWS])", "cp.unique(ROWS)", "cp.nonzero(MASK)",
    "cp.flatnonzero(MASK)", "ROWS[MASK]", "ROWS[MASK]", "ROWS[1:]", "ROWS[0]", "ROWS[cp.nonzero(MASK)]", "len(ROWS)",
    "ROWS.dtype", "ROWS.shape", "op.iadd(ROWS, NUMBER)", "op.imul(ROWS, ROWS)", "op.isub(u, v)",
    "op.itruediv(v, NUMBER)", "op.ipow(u, 2)", "put(x, b, ROWS)", "put(y, b, x[b])", "put(x, b, y[b] * 0.5)",
    "put(m, r, ROWS)", "put(m, r, m[r] + p[r])", "put(c, b, u)", "put(x, b, c[b])", "put(w, b, v)",
    "put(x, MASK, NUMBER)", "put(x, b, x[b] + 1)", "float(ROWS.sum())", "op.iand(b, x > 3)", "put(b, 2, True)",
    "put(b, slice(1, 4), a[1:4])", "keep(ROWS)", "keep(ROWS + NUMBER)", "let(u=x[b], v=y[b])", "let(u=x[b], v=y[b])",
    "let(u=x[b], v=y[b])", "let(u=x[b])", "put(x, b, u)", "put(x, b, v)", "put(y, b, u)", "op.iadd(x[:4], ROWS)",
    "s[b] + NUMBER", "op.iadd(s[b], NUMBER)", "let(v=u * 2)", "let(b=x > 2.5)", "let(r=m[:, 1] > 3)", "kept.clear()",
    "x[b] if None else cp.sum(a=ROWS)", "cp.sum(ROWS, dtype='f4', keepdims=True)", "ROWS.sum(out=e)",
    "cp.stack([u, v])",
)  # fmt: skip
_POOLS = {"ROWS": _ROWS, "NUMBER": _NUMBERS, "MASK": _MASKS, "AXIS": _AXES}


class _Proved(Forms):
    """Finds nothing again of which a length is not known."""

    def get(self, key: Any, default: Any = None) -> Any:
        return None if SomeRows in map(type, key) else super().get(key, default)


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


def _program(seed: int, count: int) -> list[str]:
    """Return random calls, each several times."""
    chance = random.Random(seed)
    made = []
    for _ in range(count):
        call = chance.choice(_CALLS)
        for name, pool in _POOLS.items():
            while name in call:
                call = call.replace(name, chance.choice(pool), 1)
        made.append(call)
    return [chance.choice(made) for _ in range(4 * count)]


def _scope() -> dict[str, Any]:
    cp, rows = CuPy(), np.arange(12.0)
    x = cp.asarray(rows) * 1.0  # a copy that only the device knows
    m = cp.asarray(rows.reshape(4, 3)) * 1.0
    kept: list[Any] = [x]
    scope = {
        "cp": cp, "np": np, "op": operator, "nan": np.nan, "x": x, "y": x + 1.0, "m": m, "p": m * 2.0,
        "w": x.astype("f4"), "k": x.astype("i8"), "s": x.astype("u1"), "c": x * 1j, "b": x > 4.0, "a": x > 7.0,
        "r": m[:, 0] > 2.0, "e": cp.zeros(()), "kept": kept, "keep": kept.append, "put": operator.setitem,
    }  # fmt: skip
    scope["let"] = lambda **values: scope.update(values)
    scope["u"], scope["v"] = x[scope["b"]], scope["y"][scope["b"]]
    return scope


def _shown(made: Any) -> object:
    """Return what is to be the same of a result, without asking for anything."""
    if isinstance(made, ArrayCore):
        layout = made._layout
        is_later = type(layout) is LaterLayout
        return "later" if is_later else repr(layout), repr(made._ref), is_later and _known_by(layout)
    if isinstance(made, (tuple, list)):
        return type(made).__name__, [_shown(one) for one in made]
    return repr(made)


def _known_by(layout: Any) -> object:
    rows = layout.rows
    by = None if rows is None else (repr(rows.of), rows.counted is None, rows.known_count)
    return layout.is_known, repr(layout.kind), layout.most_bytes, by


def _called(call: str, scope: dict[str, Any]) -> object:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            shown = _shown(eval(call, scope))
        except Exception as error:  # whatever it is, it must be the same each way
            shown = type(error).__qualname__, str(error)
    return call, shown


def _run(
    calls: list[str], mode: Mode, is_compiled: bool, table: type[Forms] = Forms
) -> tuple[list[object], list[object]]:
    """Return what calls gave, and the ops that they were."""
    executor = _Heard()
    pipeline: Any = executor.pipeline()
    pipeline.forms, pipeline.mirror = table(pipeline.ahead.costs), HostMirror(mode)
    with Client() as client, compiled.used(is_compiled):
        client.adopt(SimpleNamespace(pipeline=pipeline))  # type: ignore[arg-type]
        scope = _scope()
        gave = [_called(call, scope) for call in calls]
        gave += [repr(scope[name].get()) for name in ("x", "y", "m", "w", "k", "c", "b", "u", "v", "e")]
        gave += [repr(one.get()) for one in scope["kept"]]
        pipeline.call(".nothing", (), Want.DESCRIPTION)
        scope.clear()
        client.adopt(None)
    return gave, [encode(op) for op in executor.ops]


@pytest.fixture(autouse=True)
def no_collector() -> Iterator[None]:
    """What is dropped is dropped where it is dropped each time."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("mode", [Mode.ON, Mode.OFF])
@pytest.mark.parametrize("seed", range(12))
def test_the_same_is_recorded_and_given_whether_it_is_found_again_or_proved(seed: int, mode: Mode) -> None:
    calls = _program(seed, 120)
    quick = _run(calls, mode, True)
    found = _run(calls, mode, False)
    proved = _run(calls, mode, False, _Proved)
    for one, other in ((found, proved), (quick, found)):
        assert [*map(repr, one[0])] == [*map(repr, other[0])]
        assert one[1] == other[1]


_AGAIN = (
    "x[b] * 2.0", "x[b] + y[b]", "-x[b]", "cp.hypot(x[b], y[b])", "3 - x[b]", "x[b] > 1", "x[b].sum()",
    "x[b].astype('f4')", "cp.where(x[b] > 0, x[b], 0.0)", "m[r] - m[r].mean(axis=0)", "m[r].sum(axis=1)",
    "op.iadd(x[b], 1)", "op.imul(x[b], y[b])", "put(x, b, y[b])", "put(x, b, x[b] + 1.0)", "cp.nonzero(b)[0] + 1",
    "cp.clip(x[b], 0, 1)",
)  # fmt: skip


@pytest.fixture(params=["compiled", "python"])
def scope(request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    """Return what programs are given, for a notebook that remembers."""
    pipeline: Any = _Heard().pipeline()
    pipeline.mirror = HostMirror()
    with Client() as client, compiled.used(request.param == "compiled"):
        client.adopt(SimpleNamespace(pipeline=pipeline))  # type: ignore[arg-type]
        scope = _scope()
        scope["is_compiled"] = compiled.is_compiled and request.param == "compiled"
        yield scope
        scope.clear()
        client.adopt(None)


@pytest.mark.parametrize("call", _AGAIN)
def test_nothing_is_proved_again_for_another_mask(
    call: str, scope: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    exec(call, scope)
    scope.update(b=scope["x"] > 2.0, r=scope["m"][:, 1] > 4.0)
    forms = scope["x"]._client.pipeline.forms
    known = len(forms)
    monkeypatch.setattr(selections, "prove", None)
    monkeypatch.setattr(selections, "is_inplace_proved", None)
    exec(call, scope)
    assert len(forms) == known


@pytest.mark.parametrize(
    "call", ["op.iadd(x[:4], x[a])", "x[:4] + x[a]", "cp.stack([x[:4], x[a]])", "cp.add(x[:4], y[a], x[:4])"]
)
def test_what_holds_of_a_length_that_was_asked_for_is_not_taken_for_others(call: str, scope: dict[str, Any]) -> None:
    for _ in range(2):
        exec(call, scope)
    scope["a"] = scope["y"] > 3.0
    with pytest.raises(ValueError, match=r"broadcast|shape"):
        exec(call, scope)


@pytest.mark.parametrize("call", ["s[b] + {}", "{} * s[b]", "op.iadd(s[b], {})"])
def test_numbers_that_do_not_fit_are_refused_though_others_were_found_to(call: str, scope: dict[str, Any]) -> None:
    for number in (2, 255, 0):
        exec(call.format(number), scope)
    with pytest.raises(OverflowError):
        exec(call.format(300), scope)


def test_what_a_mask_chose_before_it_was_written_is_not_put_where_it_chooses_now(scope: dict[str, Any]) -> None:
    x, b = scope["x"], scope["b"]
    for _ in range(2):
        x[b] = x[b] * 2.0
    before, chosen = x.get(), x[b] * 2.0
    b[2] = True
    with pytest.raises(ValueError, match=r"broadcast|shape|boolean"):
        x[b] = chosen
    np.testing.assert_array_equal(x.get(), before)


def test_what_differs_in_length_is_refused_though_others_were_as_long(scope: dict[str, Any]) -> None:
    x, y, b, a = (scope[name] for name in "xyba")
    for _ in range(2):
        x[b] + y[b]
        scope["cp"].where(x[b] > 5, y[b], x[b])
    for call in (lambda: x[b] + y[a], lambda: x[a] * y[b], lambda: scope["cp"].where(x[b] > 5, y[a], x[b])):
        with pytest.raises(ValueError, match=r"broadcast|shape"):
            call()
    u = x[b]
    with pytest.raises(ValueError, match=r"broadcast|shape"):
        u += y[a]


def test_whoever_is_as_long_is_told_how_long(scope: dict[str, Any]) -> None:
    u, v = scope["u"], scope["v"]
    w, pipeline = (u + v) * 2.0, u._client.pipeline
    assert len(w) == 7
    before = pipeline.counters.round_trips
    assert len(u) == len(v) == len(scope["x"][scope["b"]]) == 7
    assert pipeline.counters.round_trips == before


def _remembered_by_rules() -> list[tuple[object, ...]]:
    """Return by what the rules of the ufuncs below have remembered proofs."""
    rules = [rule_for(f"cupy.{name}") for name in ("add", "multiply", "subtract", "divmod")]
    return [key for rule in rules for table in (rule._proved, rule._bounded, rule._into) for key in table]


_OF_TWO = ("x[h] + y[h]", "x[h] * y[g]", "op.iadd(x[h], y[h])", "op.isub(x[g], y[h])", "m[t] - p[t]")


@pytest.mark.parametrize("call", _OF_TWO)
def test_what_masks_chose_that_are_known_is_as_long_if_they_are(
    call: str, scope: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    asarray = scope["cp"].asarray
    scope.update(h=asarray(np.arange(12) > 4), g=asarray(np.arange(12) < 7), t=asarray(np.arange(4) > 1))
    for _ in range(2):
        exec(call, scope)
    known = len(scope["x"]._client.pipeline.forms)
    monkeypatch.setattr(selections, "prove", None)
    monkeypatch.setattr(selections, "is_inplace_proved", None)
    if scope["is_compiled"]:
        monkeypatch.setattr(selections, "known_as", None)  # by which Python finds it
    for _ in range(3):
        assert type(eval(call, scope)._layout) is LaterLayout
    assert len(scope["x"]._client.pipeline.forms) == known


def test_what_known_masks_chose_is_refused_where_they_choose_otherwise_many(scope: dict[str, Any]) -> None:
    x, y, asarray = scope["x"], scope["y"], scope["cp"].asarray
    h, less, one = (asarray(host) for host in (np.arange(12) > 4, np.arange(12) > 5, np.arange(12) == 3))
    for _ in range(2):
        np.testing.assert_array_equal((x[h] + y[h]).get(), 2 * np.arange(5.0, 12.0) + 1)
        np.testing.assert_array_equal((x[h] + y[one]).get(), np.arange(5.0, 12.0) + 4)
        with pytest.raises(ValueError, match=r"broadcast|shape"):
            x[h] + y[less]


@pytest.mark.parametrize(
    "call", ["x[b] + y[b]", "op.iadd(x[b], y[b])", "x[:7] * y[b]", "cp.unique(x) - 1", "cp.divmod(x[b], y[b])",
             "cp.add(x[b], y[b], dtype='f8')", "op.imul(x[:7], y[b])", "cp.unique(x) + [[1.0]]"],
)  # fmt: skip
def test_no_rule_remembers_what_holds_of_one_array_alone(call: str, scope: dict[str, Any]) -> None:
    scope["x"]._client.pipeline.mirror = HostMirror(Mode.OFF)
    _called(call, scope)
    known = len(_remembered_by_rules())
    for _ in range(3):
        _called(call, scope)
    assert len(_remembered_by_rules()) == known
    layouts = [part for key in _remembered_by_rules() for part in key if isinstance(part, Layout)]
    assert {Layout} == set(map(type, layouts))


@pytest.mark.parametrize("call", ["x[b] + 2.5", "7 * k[b]", "op.iadd(x[b], 1.5)", "op.imul(k[b], 3)"])
def test_numbers_are_found_again_though_rules_have_forgotten_what_they_proved(
    call: str, scope: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    exec(call, scope)  # now the proof is remembered, for other sessions too
    pipeline: Any = scope["x"]._client.pipeline
    pipeline.forms = Forms(pipeline.ahead.costs)
    for name in ("add", "multiply"):
        for table in ("_proved", "_bounded", "_into"):
            monkeypatch.setattr(rule_for(f"cupy.{name}"), table, {})
    exec(call, scope)
    for name in ("prove", "is_inplace_proved"):
        monkeypatch.setattr(selections, name, None)
    exec(call, scope)


def test_whoever_shares_the_rows_is_told_how_many_without_a_mirror_too(scope: dict[str, Any]) -> None:
    x, pipeline = scope["x"], scope["x"]._client.pipeline
    pipeline.mirror = HostMirror(Mode.OFF)
    for _ in range(3):
        u = x[scope["b"]]
        v = u * 2.0
        w = -v
        assert len(v) == 7
        before = pipeline.counters.round_trips
        assert len(u) == len(w) == 7
        assert pipeline.counters.round_trips == before


def test_rows_that_no_op_is_known_to_have_chosen_are_not_of_the_first_op() -> None:
    batch = SimpleNamespace(end=1)
    client: Any = SimpleNamespace(pipeline=SimpleNamespace(open_batch=batch))
    assert not stores._is_unwritten(client, Rows(None, 0, []))
    batch.end = 3
    assert stores._is_unwritten(client, Rows(None, 2, []))
