"""What is made of ``x[mask]`` element by element, or summed up, waits for nobody to say how much the mask selects."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_backend.devices import open_device
from gpu_backend.opstream import proof
from kernelproxy.calls import dispatch
from kernelproxy.client import current
from kernelproxy.mirror.host_mirror import HostMirror, Mode
from kernelproxy.namespace.names import make
from tests.conformance.in_process import InProcess, cost, notebook_on

#: More than is ever read for the host's own sake.
HOST = np.random.default_rng(4).normal(size=20_000)


@pytest.fixture(scope="module", params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest) -> Iterator[InProcess]:
    with notebook_on(open_device(request.param)) as executor:
        yield executor


@pytest.fixture(params=[Mode.ON, Mode.OFF])
def mode(request: pytest.FixtureRequest) -> Mode:
    """Return whether the notebook remembers; if not, it does not know either who writes a mask."""
    found: Mode = request.param
    return found


@pytest.fixture
def cp(mode: Mode, device: InProcess, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """Return names of CuPy."""
    monkeypatch.setattr(current().pipeline, "mirror", HostMirror(mode))
    return lambda name: make(f"cupy.{name}")


@pytest.mark.parametrize("name", ["sum", "prod", "any", "all"])
@pytest.mark.parametrize("bound", [0.3, 100.0])
def test_a_whole_reduction_of_what_is_selected_is_one_trip(cp: Callable[[str], Any], name: str, bound: float) -> None:
    x = cp("asarray")(HOST)
    found = []
    assert cost(lambda: found.append(float(getattr(x[x > bound] / 8, name)()))) == 1
    assert cost(lambda: found.append(float(cp(name)(x[x > bound] / 8)))) == 1
    expected = float(getattr(HOST[bound < HOST] / 8, name)())
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_a_step_of_an_escape_time_waits_for_nothing(cp: Callable[[str], Any], mode: Mode) -> None:
    z, alive, host = cp("asarray")(HOST.reshape(100, 200) + 0.5j), cp("ones")((100, 200), bool), HOST.reshape(100, 200)
    steps, expected, is_alive = cp("zeros")((100, 200), int), host + 0.5j, np.ones((100, 200), bool)
    counted = np.zeros((100, 200), int)

    def step(number: int) -> None:
        nonlocal z, alive
        z[alive] = z[alive] ** 2 + (-0.7 + 0.27j)
        alive &= abs(z) < 2
        steps[alive] = number

    for number in range(4):
        waited = cost(lambda number=number: step(number))  # type: ignore[misc]
        assert waited == 0 or mode is Mode.OFF
        expected[is_alive] = expected[is_alive] ** 2 + (-0.7 + 0.27j)
        is_alive &= np.abs(expected) < 2
        counted[is_alive] = number
    np.testing.assert_allclose(z.get(), expected)
    np.testing.assert_array_equal(steps.get(), counted)


def test_two_selections_by_one_mask_are_as_long(cp: Callable[[str], Any], mode: Mode) -> None:
    x, y = cp("asarray")(HOST), cp("asarray")(HOST[::-1].copy())
    mask = x > 0.3
    found = []
    waited = cost(lambda: found.append(float((x[mask] * y[mask]).sum())))
    assert waited == 1 or mode is Mode.OFF
    np.testing.assert_allclose(found, (HOST[HOST > 0.3] * HOST[::-1][HOST > 0.3]).sum())


def test_whoever_has_been_asked_how_much_tells_the_others(cp: Callable[[str], Any], mode: Mode) -> None:
    x = cp("asarray")(HOST)
    mask = x > 0.3
    chosen, doubled = x[mask], x[mask] * 2
    waited = cost(lambda: (len(chosen), len(doubled), len(-chosen)))
    assert waited == 1 or mode is Mode.OFF
    assert len(doubled) == len(-chosen) == int((HOST > 0.3).sum())


def test_selections_by_a_mask_that_was_written_in_between_are_not_taken_for_as_long(cp: Callable[[str], Any]) -> None:
    x = cp("asarray")(HOST)
    mask = x > 0.3
    first = x[mask]
    mask[:] = x > 0.5
    with pytest.raises(ValueError, match="broadcast"):
        first + x[mask]
    mask &= x > 0.7
    with pytest.raises(ValueError, match=r"boolean index|broadcast|input array|shape"):
        x[mask] = first


def test_what_is_wrong_is_told_at_its_line(cp: Callable[[str], Any]) -> None:
    x = cp("asarray")(HOST)
    chosen = x[x > 0.3]
    with pytest.raises(TypeError):
        chosen << 1
    with pytest.raises(ValueError, match="broadcast"):
        chosen + x
    small = cp("asarray")(HOST.astype("u1"))
    with pytest.raises(OverflowError):
        small[x > 0.3] + 300


_DTYPES = ["?", "u1", "i4", "i8", "f4", "f8", "c16"]
_BINARY = [operator.add, operator.mul, operator.sub, operator.truediv, operator.lt, operator.eq]
_NUMBERS = [True, 3, -2, 0.5, 1 + 2j]


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_dtypes_and_values_are_those_of_what_is_known(device: InProcess, data: st.DataObject) -> None:
    make_array = make("cupy.asarray")
    host = (HOST[:50] * 3).astype(data.draw(st.sampled_from(_DTYPES)))
    chosen = HOST[:50] > data.draw(st.sampled_from([-9.0, 0.0, 1.5, 9.0]))
    x, mask = make_array(host), make_array(HOST[:50]) > make_array(HOST[:50][~chosen].max(initial=-99.0))
    if not np.array_equal(mask.get(), chosen):  # what is not chosen lies below all that is
        mask = make_array(chosen)
    known, unknown = make_array(host[chosen]), x[mask]
    for _ in range(data.draw(st.integers(1, 3))):
        operation, number = data.draw(st.sampled_from(_BINARY)), data.draw(st.sampled_from(_NUMBERS))
        is_reflected = data.draw(st.booleans())
        results = []
        for one in (known, unknown):
            try:
                results.append(operation(number, one) if is_reflected else operation(one, number))
            except Exception as error:  # whatever it is, the other must raise it, too
                results.append(type(error))
        if isinstance(results[0], type) or isinstance(results[1], type):
            assert results[0] is results[1]
            return
        known, unknown = results
    total = unknown.sum()
    np.testing.assert_array_equal(unknown.get(), known.get())
    assert unknown.dtype == known.dtype
    assert total.dtype == known.sum().dtype


ROWS = HOST[:15_000].reshape(5_000, 3)
_CHOOSE_ROWS = "k = p[:, 0] > bound; "
_CHOOSE = "m = x > bound; "
#: Statements on rows of ``p`` that ``k`` chooses, on elements of ``x`` that ``m`` does, and what to look at afterwards.
_OF_ROWS = {
    "p": ["p[k] = 0", "p[k] += w", "p[k] = p[k] * 2 - w"],
    "r": [
        "r = p[k].sum(axis=0)", "r = p[k].mean(axis=0)", "r = cp.std(p[k], axis=0)", "r = p[k].sum(1)", "r = p[k] - w",
        "r = w - p[k]", "r = p[k] / p[k].sum(axis=1, keepdims=True)", "r = ((p[k] - p[k].mean(axis=0)) ** 2).sum()",
        "r = p[k] @ w", "r = cp.dot(p[k], w)", "r = cp.where(p[k] > 0, p[k], w)", "r = p[k].astype('f4')", "r = f[k]",
        "r = f[k] * 2", "r = (p[k] > 0).all(axis=1)",
    ],
}  # fmt: skip
_OF_ELEMENTS = {
    "x": [
        "x[m] *= 2", "x[m] += y[m]", "t = x[m]; t -= 1; t *= t; x[m] = t", "x[m] **= 2", "i = cp.nonzero(m); x[i] += 1",
        "i = cp.flatnonzero(m); x[i] = 0", "i = cp.flatnonzero(m); x[i] = x[i] + y[i]",
    ],
    "r": [
        "r = x[m].mean()", "r = x[m].std()", "r = cp.var(x[m], ddof=1)", "r = cp.sort(x[m])", "r = x[m].copy()",
        "r = cp.clip(x[m], 0, 1)", "r = cp.cumsum(x[m])", "r = x[m].argsort()", "i = cp.where(m)[0]; r = x[i].sum()",
        "i = cp.nonzero(m); r = x[i] * 2", "i = cp.flatnonzero(m); r = i.sum()", "r = cp.where(x > bound)[0] * 2",
        "r = cp.unique(x.round()).sum()", "r = cp.where(condition=m)[0].sum()", "r = cp.flatnonzero(a=m) + 1",
    ],
}  # fmt: skip
_IDIOMS = [
    (choice, choose, statement, name)
    for choice, choose, of in (("k = p[:, 0] > bound", "p[k]", _OF_ROWS), ("m = x > bound", "x[m]", _OF_ELEMENTS))
    for name, statements in of.items()
    for statement in statements
]


def _scope(cp: Callable[[str], Any], bound: float) -> dict[str, Any]:
    class Names:
        def __getattr__(self, name: str) -> Any:
            return cp(name)

    asarray = cp("asarray")
    return {
        "cp": Names(), "bound": bound, "x": asarray(HOST), "y": asarray(HOST[::-1].copy()), "p": asarray(ROWS),
        "f": asarray(np.asfortranarray(ROWS)), "w": asarray(ROWS[7]),
    }  # fmt: skip


@pytest.mark.parametrize("bound", [-9.0, 0.3, 9.0], ids=["all", "some", "none"])
@pytest.mark.parametrize(("choice", "choose", "statement", "name"), _IDIOMS, ids=[one[2] for one in _IDIOMS])
def test_what_goes_row_by_row_waits_for_nothing_and_gives_the_same(
    cp: Callable[[str], Any], mode: Mode, choice: str, choose: str, statement: str, name: str, bound: float
) -> None:
    """Beside the same on lengths that were asked for before."""
    scope, other = _scope(cp, bound), _scope(cp, bound)
    waited = cost(lambda: exec(f"{choice}; {statement}", scope))
    assert waited == 0 or mode is Mode.OFF
    exec(f"{choice}; len({choose}); {statement}", other)
    found, expected = scope[name], other[name]
    assert (found.shape, found.strides, found.dtype) == (expected.shape, expected.strides, expected.dtype)
    np.testing.assert_array_equal(found.get(), expected.get())


@pytest.mark.parametrize(
    "statement", ["p[k] - x[:4]", "p[k] += x[:2]", "p[k] @ x[:4]", "p[k].sum(axis=2)", "x[m].max()"]
)
def test_what_does_not_fit_any_number_of_rows_is_told_at_its_line(cp: Callable[[str], Any], statement: str) -> None:
    scope = _scope(cp, 9.0)
    exec("m = x > bound; k = p[:, 0] > bound", scope)
    with pytest.raises((ValueError, np.exceptions.AxisError)):
        exec(statement, scope)


def test_a_dtype_and_a_number_of_axes_are_known_without_a_length(cp: Callable[[str], Any]) -> None:
    scope = _scope(cp, 0.3)
    found: list[Any] = []
    assert cost(lambda: found.append((r := scope["p"][scope["p"][:, 0] > 0.3], r.dtype, r.ndim))) == 0
    assert found[0][1:] == (np.dtype("f8"), 2)


def test_what_cannot_be_remembered_by_is_no_reason_to_fail(cp: Callable[[str], Any]) -> None:
    scope = _scope(cp, 0.3)
    mask = scope["x"] > 0.3
    expected = HOST[HOST > 0.3]
    np.testing.assert_array_equal((scope["x"][mask] * np.float32(2)).get(), expected * np.float32(2))
    np.testing.assert_array_equal(cp("clip")(scope["x"][mask], np.nan, 5.0).get(), np.minimum(expected, 5.0))
    with pytest.raises((TypeError, ValueError)):
        scope["x"][mask] + np.zeros((), [("a", "f8")])[()]


def test_selections_that_are_found_again_are_as_the_first(
    cp: Callable[[str], Any], mode: Mode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is by the mask that it is given, waits no more than the first, and is proved once."""
    x, y, table = cp("asarray")(HOST), cp("asarray")(HOST[::-1].copy()), cp("asarray")(HOST.reshape(-1, 4))
    asked: list[str] = []

    def prove(name: str, *given: Any) -> Any:
        asked.append(name)
        return proof.prove(name, *given)

    monkeypatch.setattr(dispatch, "prove", prove)
    for turn, bound in enumerate((0.3, 0.9, -5.0, 100.0, 0.3)):
        mask, rows = x > bound, table[:, 0] > bound
        kept = bound < HOST
        before = len(asked)
        found: list[Any] = []
        waited = cost(lambda mask=mask, rows=rows, found=found: found.extend((x[mask], y[mask], table[rows])))  # type: ignore[misc]
        assert waited == 0
        assert len(asked) == before or not turn
        waited = cost(lambda found=found: (found[0] + found[1], len(found[0]), len(found[1])))  # type: ignore[misc]
        assert waited == 1 or mode is Mode.OFF
        np.testing.assert_array_equal(found[0].get(), HOST[kept])
        np.testing.assert_array_equal(found[1].get(), HOST[::-1][kept])
        np.testing.assert_array_equal(found[2].get(), HOST.reshape(-1, 4)[kept[::4]])


def test_a_selection_that_may_find_no_memory_is_waited_for_though_it_is_found_again(
    cp: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    x = cp("asarray")(HOST)
    mask = x > 0.3
    assert cost(lambda: [x[mask], x[mask]]) == 0
    monkeypatch.setattr(current().pipeline.memory, "is_sure", lambda *given: False)
    monkeypatch.setattr(current().pipeline.memory, "small_bytes", 0)
    assert cost(lambda: x[mask]) == 1
