"""Functions whose calls have a session of a real pool only while they run."""

from __future__ import annotations

import gc
import os
import signal
import threading
import traceback
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import kernelproxy
import workbench
from gpu_backend.node import launcher
from gpu_backend.pool.settings import PoolSettings
from gpu_backend.pool.state import PoolState
from gpu_backend.wire.errors import SessionLost
from kernelproxy.calls.common_client import MixedClients
from kernelproxy.client import clients, current
from tests.executor_of import directory_of
from tests.integration.notebook_pool import cpu_pool, sessions, wait_until
from workbench.call_client import CallClient


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PoolState]:
    settings = PoolSettings(devices="cpu", warm_executors_per_device=2)
    with cpu_pool(tmp_path_factory.mktemp("functions"), settings) as own:
        kernelproxy.activate()
        yield own
        current().close()
        kernelproxy.deactivate()


@pytest.fixture(autouse=True)
def nothing_held(pool: PoolState) -> Iterator[None]:
    """Whatever a test does with functions, the pool has no session of theirs afterwards."""
    yield
    current().close()
    wait_until(lambda: sessions(pool) == ())


def own_session() -> str:
    """Return the session of whoever calls."""
    return current().session.ticket.session


def test_a_call_has_a_session_while_it_runs_and_none_is_held_then(pool: PoolState) -> None:
    @workbench.function(gpu=0.5, memory="64 MiB")
    def total(n: int) -> Any:
        import cupy as cp

        held.extend(sessions(pool))
        return cp.arange(float(n)).sum(), own_session()

    held: list[Any] = []
    assert sessions(pool) == ()
    for n in (5, 6):
        found, session = total(n).result()
        assert isinstance(found, np.ndarray)
        assert float(found) == sum(range(n))
        wait_until(lambda: sessions(pool) == ())
        assert held.pop().session == session
        assert not held
    assert current().opened is None, "the notebook's own client has nothing to do with it"


def test_what_is_asked_for_is_what_the_session_has(pool: PoolState) -> None:
    @workbench.function(memory="64 MiB")
    def mine() -> Any:
        (one,) = sessions(pool)
        return one.label, one.memory_limit_bytes, current().session.memory()["limit_bytes"]

    assert mine().result() == ("function mine", 64 << 20, 64 << 20)
    wait_until(lambda: sessions(pool) == ())  # it was given back, and is closing until its executor has ended
    assert mine.options(memory=32 << 20)().result()[1:] == (32 << 20, 32 << 20)


def test_two_at_once_have_two_sessions(pool: PoolState) -> None:
    both = threading.Barrier(2)

    @workbench.function
    def meet() -> str:
        both.wait(60)
        return own_session()

    first, second = meet(), meet()
    assert first.result() != second.result()


def test_each_call_begins_afresh(pool: PoolState) -> None:
    @workbench.function
    def drawn() -> Any:
        import cupy as cp

        cp.random.seed(1)
        made = cp.random.random(3)
        cp.random.seed(len(cp.random.random(2)))
        return made

    one, other = drawn().result(), drawn().result()
    assert one.tolist() == other.tolist()


def test_a_map_shares_few_sessions_and_keeps_the_order(pool: PoolState) -> None:
    @workbench.function(max_workers=2)
    def squared(n: int, by: int) -> Any:
        import cupy as cp

        return own_session(), cp.asarray(n) ** by

    told = [future.result() for future in squared.map(range(12), [2] * 12)]
    assert [int(value) for _, value in told] == [n**2 for n in range(12)]
    assert 1 <= len({session for session, _ in told}) <= 2


def test_an_error_is_the_functions_own_and_points_to_its_line(pool: PoolState) -> None:
    @workbench.function
    def wrong(kind: str) -> None:
        import cupy as cp
        import cupyx

        if kind == "host":
            raise LookupError("of the user's own")
        if kind == "later":
            current().pipeline.record("cupy.no_such_function", ())  # for whose result nobody asks
            return
        with cupyx.errstate(linalg="raise"):
            cp.linalg.cholesky(cp.asarray([[1.0, 2.0], [2.0, 1.0]]))

    for kind, raised in (("host", LookupError), ("device", np.linalg.LinAlgError), ("later", AttributeError)):
        error = wrong(kind).exception()
        assert isinstance(error, raised), error
        frames = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
        if kind == "later":
            assert any("test_functions.py" in note for note in error.__notes__)
        else:
            assert frames[0] == "wrong"
        assert hasattr(error, "remote_traceback") == (kind != "host")


def test_results_come_home_from_whatever_holds_them(pool: PoolState) -> None:
    @workbench.function
    def many() -> Any:
        import cupy as cp
        from cupyx.scipy import sparse

        return {"list": [cp.ones(2), "text"], "pair": (cp.zeros(1), None), "sparse": sparse.eye(3, format="csr")}

    found = many().result()
    assert found["list"][0].tolist() == [1, 1]
    assert found["list"][1] == "text"
    assert found["pair"][0].tolist() == [0]
    assert found["sparse"].toarray().tolist() == np.eye(3).tolist()


def test_what_cannot_come_home_is_refused_by_name(pool: PoolState) -> None:
    @workbench.function
    def generator() -> Any:
        import cupy as cp

        return cp.random.default_rng(1)

    with pytest.raises(TypeError, match=r"cupy\.random\.Generator.*outside of the session"):
        generator().result()


def test_a_call_that_is_given_arrays_runs_where_they_lie(pool: PoolState) -> None:
    import cupy as cp

    @workbench.function
    def doubled(x: Any) -> Any:
        assert len(sessions(pool)) == 1
        return own_session(), x * 2 + cp.ones(3)

    x = cp.arange(3.0)
    session, y = doubled(x).result()
    assert session == own_session()
    assert isinstance(y, cp.ndarray)
    assert (y + x).get().tolist() == [1, 4, 7]
    assert doubled({"x": [x]}["x"][0]).result()[1].get().tolist() == [1, 3, 5]


def test_inside_of_kept_arrays_stay_remote_between_calls(pool: PoolState) -> None:
    import cupy as cp

    @workbench.function(memory="64 MiB")
    def made(n: int) -> Any:
        return own_session(), cp.arange(float(n))

    @workbench.function
    def summed(x: Any) -> Any:
        return own_session(), x.sum()

    with made.kept() as kept:
        one, x = kept(4).result()
        two, y = kept(5).result()
        three, total = summed(y).result()
        assert one == two == three
        assert [held.session for held in sessions(pool)] == [one]
        assert isinstance(x, cp.ndarray)
        assert float(total) == 10
        with pytest.raises(MixedClients, match="arrays of two clients"):
            kept(cp.ones(2))
    with pytest.raises(SessionLost, match=r"calls of made ran.*given back.*made\.kept\(\)"):
        _ = x + 1
    # What is left is that of `cp.ones`, the notebook's own.
    wait_until(lambda: [held.session for held in sessions(pool)] == [own_session()])


def test_kept_waits_for_its_calls_and_tells_what_fails_late(pool: PoolState) -> None:
    @workbench.function
    def noted(n: int) -> None:
        done.append(n)
        if n == 3:
            current().pipeline.record("cupy.no_such_function", ())

    done: list[int] = []
    with pytest.raises(AttributeError, match="no_such_function"), noted.kept() as kept:
        kept.map(range(4))
    assert done == [0, 1, 2, 3]


def test_arrays_that_a_function_left_behind_say_whose_they_were(pool: PoolState) -> None:
    @workbench.function
    def leaks() -> None:
        import cupy as cp

        left.append(cp.ones(3))

    left: list[Any] = []
    leaks().result()
    with pytest.raises(SessionLost, match="calls of leaks ran"):
        left[0].get()
    wait_until(lambda: sessions(pool) == ())


def test_what_calls_had_is_forgotten(pool: PoolState) -> None:
    @workbench.function
    def one() -> Any:
        import cupy as cp

        return cp.ones(1)

    assert [float(future.result()[0]) for future in (one(), one(), *one.map(*[[]]))] == [1, 1]
    wait_until(lambda: not [thread for thread in threading.enumerate() if thread.name.startswith("function-")])
    gc.collect()
    assert not [client for client in clients() if isinstance(client, CallClient)]


def test_an_executor_that_dies_is_the_calls_error(pool: PoolState) -> None:
    @workbench.function
    def killed() -> Any:
        import cupy as cp

        x = cp.ones(3)
        executor = launcher.process_in(directory_of(current().session.ticket))
        assert executor is not None
        os.kill(executor.pid, signal.SIGKILL)
        calls.append(1)
        return float(x.sum()), x

    calls: list[int] = []
    with pytest.raises(SessionLost):
        killed().result()
    assert calls == [1], "it was called again"
