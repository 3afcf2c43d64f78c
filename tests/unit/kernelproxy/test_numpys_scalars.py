"""Scalars of NumPy on the left of an operator: NumPy hands these calls over, and they are recorded as CuPy's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from kernelproxy.array import numpy_protocols
from kernelproxy.client import Client
from kernelproxy.namespace.names import make
from tests.unit.kernelproxy.conftest import played_client


@pytest.fixture
def client() -> Iterator[Client]:
    """The process's client, with an executor that is played."""
    with played_client() as client:
        yield client


@pytest.mark.parametrize(
    ("by_numpy", "by_us"),
    [
        (lambda x: np.float64(2) * x, lambda x: make("cupy.multiply")(np.float64(2), x)),
        (lambda x: np.float32(2) - x, lambda x: make("cupy.subtract")(np.float32(2), x)),
        (lambda x: np.multiply(x, 2.5), lambda x: make("cupy.multiply")(x, 2.5)),
        (lambda x: np.add(x, x), lambda x: make("cupy.add")(x, x)),
        (np.exp, lambda x: make("cupy.exp")(x)),
    ],
)
def test_plain_operands_are_handed_on_at_once(
    client: Client, both_ways: None, monkeypatch: pytest.MonkeyPatch,
    by_numpy: Callable[[Any], Any], by_us: Callable[[Any], Any],
) -> None:  # fmt: skip
    x = make("cupy.ones")(30, np.float32)
    made = by_us(x), by_us(x)
    monkeypatch.setattr(client.pipeline, "flush", lambda: None)  # all stays in the open batch
    monkeypatch.setattr(numpy_protocols, "_is_known", None)
    monkeypatch.setattr(numpy_protocols, "stands_for", None)
    again = by_us(x), by_numpy(x)
    ours, numpys = client.pipeline.open_batch.ops[-2:]
    assert (ours.name, ours.args, ours.orders) == (numpys.name, numpys.args, numpys.orders)
    assert {one._layout for one in (*made, *again)} == {made[0]._layout}


def test_all_others_are_looked_at(client: Client, both_ways: None) -> None:
    x, y = make("cupy.ones")(3), make("cupy.empty")(3)
    assert np.multiply(x, 2.0, out=y) is y
    assert (np.float64(1) < x).dtype == bool
    for strange in ("a", object()):
        assert numpy_protocols.array_ufunc(np.multiply, "__call__", (strange, x), {}) is NotImplemented
