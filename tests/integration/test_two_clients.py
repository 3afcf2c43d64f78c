"""Two clients in one process, each with a session of its own: neither notices what the other does."""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest

from gpu_backend.pool.settings import PoolSettings
from gpu_backend.wire.errors import SessionLost
from kernelproxy.calls.common_client import MixedClients
from kernelproxy.client import Client, current
from kernelproxy.namespace.names import make
from kernelproxy.settings import ClientSettings

from .conftest import MakePool, RunningPool, make_pool

__all__ = ["make_pool"]

arange, zeros, asarray = make("cupy.arange"), make("cupy.zeros"), make("cupy.asarray")
SCALE = 'extern "C" __global__ void scale(double* x) { x[threadIdx.x] *= 2; }'


def client_of(pool: RunningPool) -> Client:
    """Return a client that is ada."""
    key = pool.state.root / "ada.key"
    return Client(ClientSettings(gateway=pool.ada.endpoint, server_key=pool.ada.server_key.decode(), key_file=key))


@pytest.fixture(scope="module")
def pools(make_pool: MakePool) -> tuple[RunningPool, RunningPool]:
    return tuple([make_pool(executor_command=PoolSettings().executor_command) for _ in range(2)])  # type: ignore[return-value]


@pytest.fixture(params=["two pools", "two sessions of one pool"])
def clients(request: pytest.FixtureRequest, pools: tuple[RunningPool, RunningPool]) -> Iterator[tuple[Client, Client]]:
    first, second = pools
    with ExitStack() as ends:
        made = client_of(first), client_of(second if request.param == "two pools" else first)
        for one in made:
            ends.callback(one.close)
        yield made


def used_bytes(client: Client) -> int:
    return client.session.memory()["used_bytes"]


def test_they_compute_in_turns(clients: tuple[Client, Client]) -> None:
    one, other = clients
    with one:
        x = arange(6.0)
    with other:
        y = arange(6.0) * 10
    for _ in range(20):  # whichever is chosen, an array computes where it lies
        with other:
            x += 1
        with one:
            y[1:-1] += 1
            assert current() is one
    assert one.session.ticket.session != other.session.ticket.session
    assert x.get().tolist() == [20, 21, 22, 23, 24, 25]
    assert y.get().tolist() == [0, 30, 40, 50, 60, 50]
    assert float(make("cupy.linalg.norm")(y)) == float(np.linalg.norm([0, 30, 40, 50, 60, 50]))
    assert current() not in clients
    assert current().opened is None


def test_they_compute_in_two_threads(clients: tuple[Client, Client]) -> None:
    found: dict[int, float] = {}
    begun = threading.Barrier(2)

    def compute(place: int) -> None:
        with clients[place]:
            begun.wait()
            x = zeros(1000) + place
            for step in range(300):
                x = x * 0.5 + step
                if step % 50 == 0:
                    found[place] = float(x[7])
            found[place] = float(x.sum())

    threads = [threading.Thread(target=compute, args=(place,)) for place in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for place, total in found.items():
        x = np.zeros(1000) + place
        for step in range(300):
            x = x * 0.5 + step
        assert total == x.sum()
    assert found.keys() == {0, 1}


def test_they_drop_arrays_apart(clients: tuple[Client, Client]) -> None:
    one, other = clients
    arrays = []
    for client in clients:
        with client:
            arrays.append(zeros(1 << 20))
    held = used_bytes(one), used_bytes(other)
    with other:  # whoever is chosen as an array ends
        arrays[0] = None
    assert used_bytes(one) < held[0]
    assert used_bytes(other) == held[1]
    assert float(arrays[1].sum()) == 0


def test_they_fail_apart(clients: tuple[Client, Client]) -> None:
    one, other = clients
    with one:
        x = asarray([1.0, 2.0])
        broken = make("cupy.linalg.cholesky")
        one.pipeline.record("cupy.no_such_function", ())  # for whose result nobody asks
    with other:
        y = asarray([3.0])
        assert float(y.sum()) == 3.0  # and so nobody hears of it here
        other.session.synchronize()
    with pytest.raises(AttributeError, match="no_such_function"):
        one.session.synchronize()
    with pytest.raises(np.linalg.LinAlgError):
        broken(x)
    assert x.get().tolist() == [1.0, 2.0]


def test_they_close_apart(clients: tuple[Client, Client]) -> None:
    one, other = clients
    with one:
        x = arange(3.0)
        former = one.session.ticket.session
    with other:
        y = arange(3.0)
        assert float(y.sum()) == 3.0
    pipeline = one.session.pipeline
    one.close()
    assert (y + 1).get().tolist() == [1, 2, 3]
    with pytest.raises(SessionLost, match="was closed"):
        pipeline.flush()
    with one:  # which takes another session when it is used again
        assert arange(3.0).get().tolist() == [0, 1, 2]
    assert one.session.ticket.session != former
    with pytest.raises(SessionLost, match="not in this session"):
        x.get()
    assert (y + 2).get().tolist() == [2, 3, 4]


def test_streams_and_settings_are_a_clients(clients: tuple[Client, Client]) -> None:
    one, other = clients
    with one:
        stream = make("cupy.cuda.Stream")()
        with stream:
            x = arange(3.0) + 1
            with other:
                assert make("cupy.cuda.get_current_stream")() is make("cupy.cuda.Stream").null
                y = arange(3.0) + 2
        make("cupyx.seterr")(linalg="raise")
        assert make("cupyx.geterr")()["linalg"] == "raise"
    with other:
        assert make("cupyx.geterr")()["linalg"] == "ignore"
    assert (x.get().tolist(), y.get().tolist()) == ([1, 2, 3], [2, 3, 4])


def _put(x: Any, y: Any) -> None:
    x[:] = y


def _out(x: Any, y: Any) -> None:
    make("cupy.sqrt")(x, out=y)


def _launched(x: Any, y: Any) -> None:
    with x._client:
        make("cupy.RawKernel")(SCALE, "scale")((1,), (3,), (y,))


MIXED: dict[str, Callable[[Any, Any], Any]] = {
    "operator": operator.add,
    "in place": operator.iadd,
    "assigned": _put,
    "index": lambda x, y: x[y.astype("i8")],
    "function": lambda x, y: make("cupy.dot")(x, y),
    "in a list": lambda x, y: make("cupy.concatenate")([x, y]),
    "out": _out,
    "kernel": _launched,
    "where": lambda x, y: make("cupy.where")(x > 1, y, 0),
}


def test_their_arrays_do_not_mix(clients: tuple[Client, Client]) -> None:
    arrays = []
    for client in clients:
        with client:
            arrays.append(arange(3.0))
    x, y = arrays
    for name, mixing in MIXED.items():
        with pytest.raises(MixedClients, match="arrays of two clients") as told:
            mixing(x, y)
        assert "asarray(x.get())" in str(told.value), name
    with clients[0]:
        assert (x + asarray(y.get())).get().tolist() == [0, 2, 4]
    assert [one.get().tolist() for one in arrays] == [[0, 1, 2]] * 2
