"""Methods of remote objects that are found again: the ops that were proved, as long as what proves them is the same."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from gpu_backend.opstream.layout import SparseLayout
from gpu_backend.opstream.proof import Made, prove
from gpu_backend.wire import values as wire
from kernelproxy import compiled
from kernelproxy.calls import dispatch, remote_members, repeats, stand_ins
from kernelproxy.calls.callbacks import NotebookFunction
from kernelproxy.calls.remote_object import remote_class
from kernelproxy.client import Client
from kernelproxy.mirror.host_mirror import HostMirror
from kernelproxy.namespace.names import make
from tests.unit.kernelproxy.conftest import played_client

_CSR = "cupyx.scipy.sparse.csr_matrix"
_KNOWN = SparseLayout((30, 30), np.dtype(float))


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    """The process's client, with an executor that is played."""
    with played_client() as client:
        monkeypatch.setattr(client.pipeline, "flush", lambda: None)  # all stays in the open batch
        monkeypatch.setattr(client.streams, "is_used", False)  # whatever other tests have used
        yield client


def matrix(client: Client, handle: int = 900, known: SparseLayout = _KNOWN, of: str = _CSR) -> Any:
    """Return a matrix that nobody has: its handle is of no array."""
    return stand_ins.fresh(client, Made(of, 0, known), handle)


@pytest.fixture
def anew(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What is proved, and not found again."""
    noted: list[Any] = []

    def noting(qualname: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        noted.append(qualname)
        return prove(qualname, args, kwargs)

    monkeypatch.setattr(remote_members, "prove", noting)
    monkeypatch.setattr(dispatch, "ask_object", lambda verb, target, name, *args, **kwargs: f"asked {name}")
    return noted


def test_a_call_is_proved_once_and_recorded_the_same(client: Client, both_ways: None, anew: list[Any]) -> None:
    a, x = matrix(client), make("cupy.ones")(30)
    a @ x
    a._nnz = 7
    y, z = a @ x, a @ x
    assert anew == [f"{_CSR}.__matmul__"]
    assert y._layout is z._layout
    assert y.shape == (30,)
    assert a.__dict__["_nnz"] is None  # a use may have changed how many there are
    *_, before, last = zip(client.pipeline.open_batch.ops, client.pipeline.open_batch.costs, strict=True)
    for op, cost in (before, last):
        assert (op.name, op.args, op.kwargs) == (".method", (wire.Ref(900), "__matmul__", x._ref), None)
        assert cost is client.pipeline.ahead.costs[x.nbytes.bit_length()][900]
    assert [op.out for op in (before[0], last[0])] == [y._ref.handle, z._ref.handle]


def test_the_place_in_the_program_is_noted(client: Client, both_ways: None) -> None:
    a, x = matrix(client), make("cupy.ones")(30)
    a.dot(x)
    for _ in range(2):
        a.dot(x)
        batch = client.pipeline.open_batch
        _, site = batch.at(len(batch.ops) - 1)
        assert site is not None
        assert site.code.co_name == "test_the_place_in_the_program_is_noted"


def test_what_the_proof_depends_on_is_seen(client: Client, both_ways: None, anew: list[Any]) -> None:
    a, x = matrix(client), make("cupy.ones")(30)
    a @ x
    assert (a @ make("cupy.ones")((30, 4))).shape == (30, 4)
    assert (a @ make("cupy.ones")(30, np.float32)).dtype == float
    assert a.dot(x).shape == a.toarray()[0].shape == (30,)
    assert (a.toarray("F"), a.toarray(order="F")) == ("asked toarray", "asked toarray")
    wide = matrix(client, 901, SparseLayout((4, 30), np.dtype(complex)))
    assert ((wide @ x).shape, (wide @ x).dtype) == ((4,), complex)
    assert len(anew) == 8
    array = matrix(client, 902, of="cupyx.scipy.sparse.csr_array")
    array @ x
    assert anew[-1] == "cupyx.scipy.sparse.csr_array.__matmul__"
    object.__setattr__(a, "_known", SparseLayout((5, 30), np.dtype(float)))
    assert (a @ x).shape == (5,)
    object.__setattr__(a, "_known", None)  # as where its parts were set
    assert a @ x == "asked __matmul__"
    assert wide @ make("cupy.ones")(29) == "asked __matmul__"


def test_another_current_stream_is_noted(client: Client, both_ways: None) -> None:
    a, x = matrix(client), make("cupy.ones")(30)
    a @ x
    a @ x
    stream: Any = type("Stream", (), {"_handle": 77})()
    client.streams.set_current(stream)
    try:
        a @ x
        assert client.pipeline.open_batch.ops[-1].stream == 77
    finally:
        client.streams.set_current(None)


def test_a_matrix_of_another_client_is_not_taken_for_ours(client: Client, both_ways: None, anew: list[Any]) -> None:
    a, x = matrix(client), make("cupy.ones")(30)
    a @ x
    other = matrix(Client())
    with pytest.raises(ValueError, match="session"):
        other @ x
    assert len(anew) == 2


def test_what_may_call_the_notebook_is_asked(client: Client, both_ways: None, monkeypatch: pytest.MonkeyPatch) -> None:
    a, x = matrix(client), make("cupy.ones")(30)
    a @ x
    monkeypatch.setattr(dispatch, "ask", lambda *given: "asked")
    stand_ins.keep_functions(a, [NotebookFunction(len)])
    assert a @ x == "asked"


def test_a_large_result_is_counted_and_waited_for(
    client: Client, both_ways: None, anew: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = client.pipeline.memory
    memory.set_limit(1 << 20)
    monkeypatch.setattr(memory, "small_bytes", 100)
    a, x = matrix(client), make("cupy.ones")(30)
    a @ x
    y = a @ x
    assert (len(anew), memory.held[y._ref.handle]) == (1, 240)
    memory.set_limit(100)  # now there may be no room
    monkeypatch.setattr(dispatch, "ask", lambda *given: "asked")
    assert a @ x == "asked"


def test_a_users_class_is_warned_of_each_time(client: Client, both_ways: None) -> None:
    kind: Any = remote_class(_CSR)

    class Mine(kind):  # type: ignore[misc]
        pass

    Mine._uncalled = MappingProxyType({"__matmul__": "dot"})
    mine, x = Mine.__new__(Mine), make("cupy.ones")(30)
    mine._take_over(matrix(client))
    for _ in range(3):
        with pytest.warns(RuntimeWarning, match="CuPy's __matmul__ calls dot, which Mine overrides"):
            assert (mine @ x).shape == (30,)
    assert Mine not in repeats.DESCRIBED


def test_the_host_mirror_learns_the_same_both_ways(client: Client) -> None:
    def learnt(are_used: bool) -> list[Any]:
        mirror = client.pipeline.mirror = HostMirror()
        told: list[Any] = []
        with compiled.used(are_used):
            a, x, y = matrix(client), make("cupy.ones")(30), make("cupy.empty")(30)
            start = x._ref.handle
            for given in (x, y, x[::-1], y):
                z = a @ given
                w = make("cupy.fft.fft")(z, n=8)
                make("cupy.minimum")(y, x, out=y)
                del z
                told += (
                    [one if one == 900 else one - start for one in sorted(all)] for all in (mirror.barred, mirror.known)
                )
                told.append(mirror.uncertain == client.pipeline.open_batch.end - 2)
                del w
        return told

    learnt(False)
    assert learnt(True) == learnt(False)


@pytest.mark.skipif(not compiled.is_compiled, reason="nothing is compiled here")
def test_the_host_mirror_is_not_asked_of_what_it_does_not_know(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    mirror = client.pipeline.mirror = HostMirror()
    a, x, y, at = matrix(client), make("cupy.empty")(30), make("cupy.empty")(30), make("cupy.empty")(30, int)

    def turn() -> None:
        z = make("cupy.fft.rfft")(a @ x)
        make("cupy.fft.irfft2")(z.reshape(4, 4), s=(4, 6))
        make("cupy.minimum")(x, np.float32(2), out=y)
        make("cupy.add").at(x, at, y)

    turn()
    monkeypatch.setattr(mirror, "note", None)
    monkeypatch.setattr(mirror, "drop", None)
    turn()
    mirror.known[y._ref.handle] = None  # type: ignore[assignment]
    with pytest.raises(TypeError, match="not callable"):
        turn()
    mirror.known.clear()


@pytest.mark.skipif(not compiled.is_compiled, reason="nothing is compiled here")
def test_nothing_is_held_on_to(client: Client) -> None:
    client.pipeline.mirror = HostMirror()
    a, x = matrix(client), make("cupy.empty")(30)

    def turns(count: int) -> list[int]:
        for _ in range(count):
            make("cupy.fft.fft")(a @ x, n=8)
            client.pipeline.dropped.clear()
            client.pipeline.open_batch = type(client.pipeline.open_batch)(1)
            client.pipeline.mirror.barred.clear()
        gc.collect()
        return [*map(sys.getrefcount, (a, x, x._ref, x._layout, a._known, a._known.shape, client.pipeline))]

    turns(5)
    before = turns(1)
    allocated = sys.getallocatedblocks()
    assert turns(5_000) == before
    assert sys.getallocatedblocks() - allocated < 500
