"""``x[mask] = value`` is what CuPy's own way of it gives, bit for bit, and nothing is waited for or counted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_backend.devices import open_device
from gpu_backend.wire.messages import Want
from kernelproxy.calls import dispatch
from kernelproxy.client import current
from kernelproxy.mirror.host_mirror import HostMirror, Mode
from kernelproxy.namespace.names import make
from tests.conformance.in_process import InProcess, notebook_on

DTYPES = ["?", "i1", "u1", "i4", "u4", "i8", "f2", "f4", "f8", "c8", "c16"]
NUMBERS = [True, 3, -2, 0, 0.0, -0.0, 0.1, -1e-310, 60000.0, float("nan"), float("-inf"),
           1 + 2**-11 + 2**-30]  # fmt: skip
SHAPES = [(), (1,), (4,), (1, 4), (3, 1), (3, 4), (5, 3, 4)]
HOST = np.random.default_rng(5).normal(size=(5, 3, 4)) * 3


@pytest.fixture(scope="module", params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest) -> Iterator[InProcess]:
    with notebook_on(open_device(request.param)) as executor:
        yield executor


def is_put_at_once(array: Any, mask: Any, value: Any) -> bool:
    """Do ``array[mask] = value``; tell whether it was recorded as an op that needs no number of elements."""
    pipeline = current().pipeline
    pipeline.call(".nothing", (), Want.DESCRIPTION)
    pipeline.forms.clear()
    before = pipeline.counters.round_trips
    array[mask] = value
    assert pipeline.counters.round_trips == before
    return any(key[1] == ".store_where" for key in pipeline.forms)


@settings(max_examples=400, deadline=None)
@given(data=st.data())
def test_it_gives_what_cupys_own_way_gives(device: InProcess, data: st.DataObject) -> None:
    asarray = make("cupy.asarray")
    with np.errstate(all="ignore"):
        host = HOST.astype(data.draw(st.sampled_from(DTYPES)))
        axes, bound = data.draw(st.integers(1, 3)), data.draw(st.sampled_from([-99.0, 0.0, 2.0, 99.0]))
        values = HOST[::-1].astype(data.draw(st.sampled_from(DTYPES)))
    mask = asarray(HOST[(slice(None),) * axes + (0,) * (3 - axes)] > bound)
    shape = data.draw(st.sampled_from(SHAPES))
    value = data.draw(st.sampled_from([*NUMBERS, asarray(np.resize(values, shape))]))
    ours, theirs = asarray(host), asarray(host)
    if data.draw(st.booleans()):  # a window, which lies the other way round
        ours, theirs, mask = ours[::-1, :, ::-1], theirs[::-1, :, ::-1], mask[::-1]
    outcomes: list[object] = []
    for array, put in ((ours, type(ours).__setitem__), (theirs, _as_cupy)):
        try:
            put(array, mask, value)
            outcomes.append(array.get().tobytes())
        except (OverflowError, TypeError, ValueError, Warning) as error:
            outcomes.append(type(error))
    assert outcomes[0] == outcomes[1]


def _as_cupy(array: Any, mask: Any, value: Any) -> None:
    dispatch.call("cupy.ndarray.__setitem__", (array, mask, value), {})


@pytest.mark.parametrize("value", [0, 2.5, True])
def test_no_number_is_waited_for(device: InProcess, value: float) -> None:
    x = make("cupy.asarray")(HOST)
    assert is_put_at_once(x, x > 0, value)
    assert is_put_at_once(x, x[:, :, 0] > 0, value)
    assert is_put_at_once(x[:, 1:], x[:, 1:, 0] > 0, value)


def test_nor_is_what_goes_into_each_row(device: InProcess) -> None:
    x = make("cupy.asarray")(HOST)
    assert is_put_at_once(x, x > 0, x[0, 0, 0] * 2)
    assert is_put_at_once(x, x[:, :, 0] > 0, x[0, 0] * 2)
    assert is_put_at_once(x, x[:, 0, 0] > 0, x[0] * 2)
    assert is_put_at_once(x, x[:, 0, 0] > 0, x[0, :, :1] * 2)


def test_an_executor_of_an_older_version_is_asked_as_ever(device: InProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    x, recorded = make("cupy.asarray")(HOST), []
    monkeypatch.setattr(dispatch, "call", lambda *args: recorded.append(args[0]))
    mask = x > 0
    x[mask] = 0
    assert not recorded
    connection = current().pipeline.connection  # which is now with another executor
    monkeypatch.setattr(connection, "welcome", msgspec.structs.replace(connection.welcome, minor=0))
    x[mask] = 0
    assert recorded == ["cupy.ndarray.__setitem__"]


def test_what_the_notebook_knows_of_what_it_puts_is_right(device: InProcess) -> None:
    pipeline, asarray = current().pipeline, make("cupy.asarray")
    before, pipeline.mirror = pipeline.mirror, HostMirror(Mode.CHECK)
    try:
        host, chosen = np.arange(12.0).reshape(3, 4), np.arange(12).reshape(3, 4) % 5 < 2
        for _ in range(4):  # what is read is worth knowing from then on
            x, mask, row = asarray(host), asarray(chosen), asarray(np.array([5.0, 6.0, 7.0, 8.0]))
            x[mask] = 0.5
            assert x.get().tolist() == np.where(chosen, 0.5, host).tolist()
            x[mask[:, 0]] = row
            assert x.get()[0].tolist() == [5.0, 6.0, 7.0, 8.0]
            x[mask] = row[1]
            assert float(x[0, 1]) == 6.0
            rows = asarray(host)[mask]
            assert len(rows) == chosen.sum()
            mask[mask] = False  # nobody may go by how many there were
            mask[asarray(chosen)] = True
            x[mask] = rows
            mask[asarray(~chosen)] = True
            with pytest.raises(ValueError, match=r"broadcast|shape"):
                x[mask] = rows
            assert x.get()[chosen].tolist() == host[chosen].tolist()
    finally:
        pipeline.mirror = before


def test_as_many_values_as_are_chosen_go_cupys_way(device: InProcess) -> None:
    x = make("cupy.asarray")(HOST[0, 0])
    mask = make("cupy.asarray")(np.array([True, False, True, True]))
    x[mask] = make("cupy.asarray")(np.array([1.0, 2.0, 3.0]))
    assert x.get()[[0, 2, 3]].tolist() == [1.0, 2.0, 3.0]
    for wrong in (np.ones(2), np.ones((3, 3))):
        with pytest.raises(ValueError, match=r"broadcast|dimensions|shape"):
            x[mask] = make("cupy.asarray")(wrong)
    assert x.get()[[0, 2, 3]].tolist() == [1.0, 2.0, 3.0]


def test_a_mask_may_be_what_it_chooses_from(device: InProcess) -> None:
    mask = make("cupy.asarray")(np.array([True, False, True]))
    mask[mask] = False
    assert mask.get().tolist() == [False, False, False]


def test_a_value_may_lie_in_what_is_written(device: InProcess) -> None:
    host = np.arange(6.0)
    x = make("cupy.asarray")(host)
    for place in (0, 3, 5):
        mask = host % 2 == place % 2
        x[make("cupy.asarray")(mask)] = x[place]
        host[mask] = host[place]
    assert x.get().tolist() == host.tolist()


def test_a_mask_of_another_shape_is_refused_as_cupy_does(device: InProcess) -> None:
    x = make("cupy.asarray")(HOST)
    with pytest.raises(IndexError, match="boolean index"):
        x[make("cupy.asarray")(np.ones((5, 2), bool))] = 0
