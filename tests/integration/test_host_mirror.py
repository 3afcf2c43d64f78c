"""What the notebook answers by itself is what the device would have said, in whatever program."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings

from gpu_backend.pool.settings import PoolSettings
from gpu_backend.wire.errors import SessionLost
from kernelproxy import settings as client_settings
from kernelproxy.calls import transfer
from kernelproxy.calls.transfer import CHUNK_BYTES
from kernelproxy.client import Client
from kernelproxy.errors import MirrorDiffers
from kernelproxy.mirror import host_mirror
from kernelproxy.mirror.host_mirror import MOST_BYTES, HostMirror
from kernelproxy.mirror.memory import Memory
from kernelproxy.namespace.names import make
from kernelproxy.stream import recorder
from tests.integration.notebook_pool import cpu_pool
from tests.mirrored_ops import differences
from tests.mirrored_programs import Run, Step, programs
from tests.unit.kernelproxy import played
from tests.unit.kernelproxy.played import interrupt_at

asarray, arange, zeros, asnumpy = (make(f"cupy.{name}") for name in ("asarray", "arange", "zeros", "asnumpy"))


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[client_settings.ClientSettings]:
    with cpu_pool(tmp_path_factory.mktemp("mirror"), PoolSettings(devices="cpu")):
        yield client_settings.load()


@pytest.fixture(scope="module")
def clients(pool: client_settings.ClientSettings) -> Iterator[dict[str, Client]]:
    """One client that knows values, one that asks for each, and one that does both."""
    made = {mode: Client(msgspec.structs.replace(pool, host_mirror=mode)) for mode in ("on", "off", "check")}
    yield made
    for one in made.values():
        one.close()


@pytest.fixture
def client(clients: dict[str, Client]) -> Iterator[Client]:
    """The client that knows values, as it is after its first trip."""
    with clients["on"] as one:
        one.session.pipeline.mirror = HostMirror()
        yield one


def trips(client: Client) -> int:
    return client.session.counters.round_trips


@settings(max_examples=150)
@given(program=programs)
def test_every_read_is_that_of_the_device(clients: dict[str, Client], program: list[Step]) -> None:
    said = {}
    for mode in ("on", "off"):
        with clients[mode] as one:
            said[mode] = Run(one).run(program)
    assert said["on"] == said["off"]


@settings(max_examples=40)
@given(program=programs)
def test_what_is_compared_with_the_device_is_the_same(clients: dict[str, Client], program: list[Step]) -> None:
    with clients["check"] as one:
        said = Run(one).run(program)
    assert not [one for one in said if isinstance(one, tuple) and one[0] == "MirrorDiffers"]


def test_every_op_has_the_bits_of_the_device(clients: dict[str, Client]) -> None:
    with clients["off"]:
        assert list(differences()) == []


# --- what costs no trip -----------------------------------------------------------------------------------------------


def test_what_was_uploaded_or_made_is_known(client: Client) -> None:
    host = np.arange(12.0).reshape(3, 4)
    x, before = asarray(host), trips(client)
    host[:] = 7  # the upload was of what it held then
    assert float(x[1, 2]) == 6.0
    assert asnumpy(x.T[::-1])[0].tolist() == [3.0, 7.0, 11.0]
    assert [int(one) for one in arange(3, 12, 4)] == [3, 7, 11]
    assert zeros((2, 2), "i2").tolist() == [[0, 0], [0, 0]]
    assert bool(make("cupy.eye")(3)[1, 1])
    assert trips(client) == before
    assert client.session.counters.answered_here >= 7


def test_large_arrays_take_their_trip(client: Client) -> None:
    x, before = zeros(MOST_BYTES + 1, "u1"), trips(client)
    assert [int(x[0]), int(x[1]), int(x[2])] == [0, 0, 0]
    assert trips(client) == before + 3


def test_a_table_that_is_read_while_it_grows_takes_a_few_trips(client: Client) -> None:
    n, before = 60, trips(client)
    table = zeros(n, "i8")
    table[1] = 1
    for place in range(2, n):
        table[place] = (table[place - 1] + table[place - 2]) % 1000
        if int(table[place]) == 0:
            break
    assert int(table[12]) == 144
    assert trips(client) - before <= 3


def test_rows_by_hand_take_a_few_trips(client: Client) -> None:
    """The pointers come from a function that is not computed here: they are fetched once."""
    pointers, before = make("cupy.searchsorted")(arange(100), arange(0, 100, 5)), trips(client)
    rows = [int(pointers[k + 1]) - int(pointers[k]) for k in range(19)]
    assert rows == [5] * 19
    assert trips(client) - before <= 2


def test_what_is_never_read_is_never_computed(client: Client) -> None:
    x = arange(100)
    for _ in range(100):
        x = x + 1
    assert client.session.pipeline.mirror.worth.budget == 0
    assert [type(one).__name__ for one in client.session.pipeline.mirror.known.values()].count("Memory") == 0


# --- what ends a lineage ----------------------------------------------------------------------------------------------

WRITES = {
    "a kernel of the user's": lambda x: make("cupy.ElementwiseKernel")("", "T x", "x = 9", "nine")(x),
    "a raw kernel": lambda x: make("cupy.RawKernel")(
        'extern "C" __global__ void nine(long long* x) { x[threadIdx.x] = 9; }', "nine"
    )((1,), (x.size,), (x,)),
    "an output": lambda x: make("cupy.exp")(zeros(x.shape), out=x.view("f8")),
    "a positional output": lambda x: make("cupy.bitwise_count")(x, x),
    "places": lambda x: make("cupy.put")(x, arange(3), 9),
    "a scatter": lambda x: make("cupy.add").at(x, arange(3), 5),
    "a fill through a pointer": lambda x: x.data.memset(0, x.nbytes),
    "a shuffle": lambda x: make("cupy.random.RandomState")(1).shuffle(x),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_a_write_that_is_not_proved_is_seen_through_every_view(client: Client, write: Any) -> None:
    x = arange(8)
    row, back = x.reshape(2, 4)[1], x[::-1]
    assert (int(row[0]), int(back[0])) == (4, 7)
    write(x)
    told = transfer.read(x, 0).tolist()
    assert told != list(range(8))
    assert (x.tolist(), row.tolist(), back.tolist()) == (told, told[4:], told[::-1])


def test_what_an_object_holds_may_change_behind_our_back(client: Client) -> None:
    data, places = asarray(np.arange(1.0, 4.0)), asarray(np.array([2, 1, 0], "i4"))
    matrix = make("cupyx.scipy.sparse.csr_matrix")((data, places, asarray(np.array([0, 3, 3, 3], "i4"))), shape=(3, 3))
    assert data.tolist() == [1.0, 2.0, 3.0]
    matrix.sort_indices()
    assert (data.tolist(), places.tolist()) == (transfer.read(data, 0).tolist(), transfer.read(places, 0).tolist())


def test_a_failure_on_its_way_is_told_at_the_read(client: Client) -> None:
    x = arange(4)
    broken = make("cupy.RawKernel")('extern "C" __global__ void f(int* p) { p[0] = 1; }', "f")
    broken((1,), (1,), (zeros(1, "i4"),))  # compiled, and waited for
    client.pipeline.record("cupy.ndarray.no_such_method", (x._ref,), 0)
    with pytest.raises(Exception, match="no_such_method"):
        int(x[1])
    assert int(x[1]) == 1


def test_an_interrupt_leaves_nothing_wrong(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it stops, what is read afterwards is what the device holds."""
    folders = [Path(one.__file__).parent for one in (recorder, host_mirror)]
    monkeypatch.setattr(played, "_CLIENT", tuple(map(str, folders)))  # one in a finalizer would be heard by nobody

    def change(x: Any) -> None:
        x[1:] += x[:-1]
        x[0] = 5
        x += 1
        x.set(x.get()[::-1].copy())

    with interrupt_at(-1) as passed:
        change(arange(6))
    for moment in range(passed[0]):
        x = arange(6)
        assert int(zeros(3)[0]) == 0
        client.session.pipeline.mirror.worth.note_trip()
        with interrupt_at(moment), contextlib.suppress(KeyboardInterrupt):
            change(x)
        assert x.tolist() == transfer.read(x, 0).tolist(), moment
    assert passed[0] > 20


def test_dropped_work_is_not_known(client: Client) -> None:
    x = arange(6)
    client.session.cancel_pending()
    assert not client.session.pipeline.mirror.known
    y = arange(3)
    assert int(y[2]) == 2
    del x


def test_a_closed_session_answers_nothing(pool: client_settings.ClientSettings) -> None:
    one = Client(pool)
    with one:
        x, session = arange(6), one.session
        assert int(x[1]) == 1
        session.close(release=True)
        with pytest.raises(SessionLost):
            int(x[1])
    one.adopt(None)


def test_two_threads_read_what_they_wrote(client: Client) -> None:
    found: dict[int, list[int]] = {}

    def count(mine: int) -> None:
        with client:
            x, said = zeros(50, "i8"), []
            for place in range(1, 50):
                x[place] = x[place - 1] + mine
                said.append(int(x[place]))
            found[mine] = said

    threads = [threading.Thread(target=count, args=(mine,)) for mine in (1, 2, 3)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert found == {mine: [mine * place for place in range(1, 50)] for mine in (1, 2, 3)}


# --- switches and counters --------------------------------------------------------------------------------------------


def test_it_can_be_switched_off(clients: dict[str, Client]) -> None:
    with clients["off"] as one:
        x, before = arange(5), trips(one)
        assert [int(x[0]), int(x[0]), int(x[0])] == [0, 0, 0]
        assert trips(one) == before + 3
        assert not one.session.pipeline.mirror.known


def test_the_comparison_finds_what_differs(clients: dict[str, Client]) -> None:
    with clients["check"] as one:
        x = asarray(np.arange(5.0))
        assert float(x[1]) == 1.0
        mirror = one.session.pipeline.mirror
        mirror.known[x._ref.handle] = Memory.of(x._layout, np.arange(5.0) + 1)
        with pytest.raises(MirrorDiffers, match="on the device"):
            float(x[1])


def test_the_environment_comes_before_the_settings(
    pool: client_settings.ClientSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPU_WORKBENCH_HOST_MIRROR", "off")
    assert client_settings.mirror_mode(pool) == "off"
    monkeypatch.setenv("GPU_WORKBENCH_HOST_MIRROR", "perhaps")
    with pytest.raises(ValueError, match="on, off or check"):
        client_settings.mirror_mode(pool)


def test_the_pieces_of_a_large_array_are_one_trip(client: Client) -> None:
    large = asarray(np.zeros(10 * CHUNK_BYTES + 1, np.uint8))
    client.session.synchronize()
    before = trips(client)
    assert large.get().nbytes == 10 * CHUNK_BYTES + 1
    assert trips(client) == before + 1


def test_trips_are_counted_by_their_reason(pool: client_settings.ClientSettings) -> None:
    one = Client(msgspec.structs.replace(pool, host_mirror="off"))
    with one:
        x = asarray(np.arange(20_000.0))
        float(x[3])
        x.get()
        len(x[x > 5])
        one.session.synchronize()
        make("cupy.trim_zeros")(x)
        counted = one.session.counters.to_dict()
    one.close()
    assert counted["trips"] == {"scalar": 1, "array": 1, "shape": 1, "synchronize": 1, "call": 1}
    assert counted["round_trips"] == sum(counted["trips"].values())
    assert counted["sent_bytes"] == {"host": 160_000}
    assert counted["received_bytes"]["inline"] == 8
    assert counted["received_bytes"]["host"] == 160_000
    assert json.loads(json.dumps(counted)) == counted
