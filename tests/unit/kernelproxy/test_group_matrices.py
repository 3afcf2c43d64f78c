"""Sparse matrices that a process group is given: those of its device, and no others."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from gpu_backend.wire import values as wire
from kernelproxy.namespace.process_group import sparse
from kernelproxy.namespace.process_group.exchange import Exchange


def client_of(number: int) -> Any:
    """Return one of several clients: each has one device, and they are used together."""
    session = SimpleNamespace(epoch=1)
    return SimpleNamespace(
        session=session, opened=session, members=("first", "second"), number=number, streams=SimpleNamespace(device=0)
    )


CALLS: dict[str, Callable[[Exchange, Any], object]] = {
    "broadcast": lambda exchange, matrix: sparse.broadcast(exchange, matrix, 0),
    "reduce": lambda exchange, matrix: sparse.reduce(exchange, matrix, matrix, "sum", 0),
    "all_reduce": lambda exchange, matrix: sparse.all_reduce(exchange, matrix, matrix, "sum"),
    "scatter": lambda exchange, matrix: sparse.scatter(exchange, [matrix, matrix], matrix, 0),
    "gather": lambda exchange, matrix: sparse.gather(exchange, matrix, [], 0),
    "all_gather": lambda exchange, matrix: sparse.all_gather(exchange, matrix, []),
    "all_to_all": lambda exchange, matrix: sparse.all_to_all(exchange, [matrix, matrix], []),
    "send": lambda exchange, matrix: sparse.send(exchange, matrix, 1),
    "receive": lambda exchange, matrix: sparse.receive(exchange, matrix, 1),
    "send_and_receive": lambda exchange, matrix: sparse.send_and_receive(exchange, matrix, matrix, 1),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_matrix_of_another_device_is_refused_in_a_call_that_is_counted(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sparse, "issparse", lambda given: True)
    exchange, elsewhere = Exchange(client_of(1), 0, ("", "a channel")), client_of(0)
    before = exchange.calls()
    matrix = SimpleNamespace(format="csr", data=SimpleNamespace(_client=elsewhere, _ref=wire.Ref(8)))
    with pytest.raises(ValueError, match="made on device 1, and the matrix is on another"):
        CALLS[name](exchange, matrix)
    assert exchange.calls() != before
