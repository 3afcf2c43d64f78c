"""Devices that have an executor each: what is made again for each, what passes between them, and what costs nothing."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from gpu_backend.wire.errors import NoDevice, PoolFull, SessionLost
from kernelproxy.calls import foreign_arrays, transfer
from kernelproxy.calls.common_client import common
from kernelproxy.calls.each_device import on_each_device
from kernelproxy.calls.error_state import ErrorState
from kernelproxy.client import Beside, Client, current
from kernelproxy.namespace import computing_settings as core
from kernelproxy.namespace.names import make
from kernelproxy.settings import ClientSettings
from kernelproxy.stream.session import Session
from tests.conformance.asked_of_views import REMOTE as cp
from tests.conformance.in_process import InProcess, cost, notebook_on_two

SOURCE = """
extern "C" __global__ void add(double* x, int n, double by) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] += by;
}
"""


@pytest.fixture(scope="module", autouse=True)
def executor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    with notebook_on_two("apart", tmp_path_factory.mktemp("kernels")) as one:
        yield one


@pytest.fixture(autouse=True)
def on_the_first() -> Iterator[None]:
    yield
    cp.cuda.Device(0).use()


@pytest.mark.parametrize("kind", ["elementwise", "reduction", "vectorize"])
def test_one_kernel_runs_on_each_device(kind: str) -> None:
    kernel, expected = {
        "elementwise": (cp.ElementwiseKernel("T x", "T y", "y = 2 * x", "double"), np.arange(8.0) * 2),
        "reduction": (cp.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", "all"), np.float64(28)),
        "vectorize": (make("cupy.vectorize")(lambda x: 2 * x), np.arange(8.0) * 2),
    }[kind]
    for number in (0, 1, 0, 1):
        with cp.cuda.Device(number):
            made = kernel(cp.arange(8.0))
            assert made.device.id == number
            np.testing.assert_array_equal(made.get(), expected)
            assert cost(lambda: kernel(cp.arange(8.0))) == 0 or kind == "vectorize"


@pytest.mark.parametrize("of_module", [False, True])
def test_what_is_compiled_of_a_source_is_made_again_by_each(of_module: bool) -> None:
    raw = cp.RawModule(code=SOURCE).get_function("add") if of_module else cp.RawKernel(SOURCE, "add")
    assert raw._here() is raw
    with cp.cuda.Device(1):
        other = raw._here()
        assert other is not raw
        assert other is raw._here()
        assert (other._client.number, other.__name__, type(other)) == (1, raw.__name__, type(raw))


def test_nothing_waits_for_what_another_device_does() -> None:
    x = cp.arange(10.0)
    with cp.cuda.Device(1):
        y = cp.arange(10.0)
        z = y * 2 + 1

        def loop() -> None:
            nonlocal z
            for _ in range(20):
                z = z * 0.5 + y
                z[1:] += y[:-1]

        assert cost(loop) == 0
        assert not current().streams.is_used  # so that the compiled core records it
    assert x._client is not y._client
    assert not current().streams.is_used


def test_what_comes_behind_an_event_of_another_executor_comes_behind_it() -> None:
    with cp.cuda.Device(1):
        made = cp.arange(1000.0).sum()
        event = cp.cuda.get_current_stream().record()
    stream = cp.cuda.Stream()
    stream.wait_event(event)
    assert event.done
    assert float(made) == 499_500


def test_copies_in_python_stay_where_the_array_is() -> None:
    with cp.cuda.Device(1):
        y = cp.arange(4)
    assert copy.deepcopy(y).device.id == 1
    assert copy.copy(y).device.id == 0


def test_devices_in_lists_and_results_of_several_are_refused_in_cupys_words() -> None:
    x = cp.arange(4.0)
    with cp.cuda.Device(1):
        y = cp.arange(4.0)
        for mixed in (
            lambda: cp.concatenate([x, y]), lambda: cp.where(y > 1, x, y), lambda: cp.dot(x, y), lambda: y.__iadd__(x),
            lambda: y[cp.asarray([0, 1])] + x[:2], lambda: cp.add(y, y, out=x), lambda: cp.linalg.norm(x),
        ):  # fmt: skip
            with pytest.raises(ValueError, match=r"resides \(0\) is different from the current device \(1\)"):
                mixed()


def test_what_a_process_has_once_holds_on_each() -> None:
    errstate = make("cupyx.errstate")
    singular = -np.eye(2)
    try:
        core.set_compute_type("f4", core.COMPUTE_TYPE_PEDANTIC)
        core.set_routine_accelerators([])
        for number in (0, 1):
            with cp.cuda.Device(number):
                assert core.get_compute_type("f4") == core.COMPUTE_TYPE_PEDANTIC
                assert list(core.get_routine_accelerators()) == []
    finally:
        core.set_compute_type("f4", core.COMPUTE_TYPE_DEFAULT)
        core.set_routine_accelerators([core.ACCELERATOR_CUB])
    with errstate(linalg="raise"), cp.cuda.Device(1):
        assert make("cupyx.geterr")()["linalg"] == "raise"
        with pytest.raises(np.linalg.LinAlgError):
            cp.linalg.cholesky(cp.asarray(singular))
    with cp.cuda.Device(1):
        assert make("cupyx.geterr")()["linalg"] == "ignore"


def test_a_pool_of_memory_serves_all_devices() -> None:
    pool = make("cupy.cuda.MemoryPool")()
    with cp.cuda.Device(1):
        made = cp.ndarray((4,), "f8", pool.malloc(32))
        made[...] = 1
        assert (made.device.id, made.tolist()) == (1, [1.0] * 4)
        assert pool.used_bytes() >= 32
    assert pool.used_bytes() == 0


def test_what_is_set_on_a_kernel_is_set_where_it_is_launched() -> None:
    raw = cp.RawKernel(SOURCE, "add")
    before = raw.max_dynamic_shared_size_bytes
    with cp.cuda.Device(1):
        raw.max_dynamic_shared_size_bytes = before // 2
        assert raw.max_dynamic_shared_size_bytes == raw._here().max_dynamic_shared_size_bytes == before // 2
    assert raw.max_dynamic_shared_size_bytes == before


def test_a_kernel_is_made_again_where_it_is_an_argument() -> None:
    total = cp.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", "total")
    generic_filter, host = make("cupyx.scipy.ndimage.generic_filter"), np.arange(8.0)
    found = []
    for number in (0, 1):
        with cp.cuda.Device(number):
            found.append(generic_filter(cp.asarray(host), total, 3))
    assert [one.device.id for one in found] == [0, 1]
    np.testing.assert_array_equal(found[0].get(), found[1].get())


def test_a_limit_of_a_pool_is_known_on_the_device_for_which_it_was_set() -> None:
    pool = make("cupy.cuda.MemoryPool")()
    make("cupy.cuda.set_allocator")(pool.malloc)
    before = current().memory.limit_bytes
    try:
        with cp.cuda.Device(1):
            pool.set_limit(size=1 << 20)
            assert current().memory.limit_bytes == 1 << 20
        assert current().memory.limit_bytes == before > 1 << 20
    finally:
        make("cupy.cuda.set_allocator")(cp.get_default_memory_pool().malloc)


def test_where_one_device_fails_the_others_are_told() -> None:
    told: list[int] = []

    def act(client: Client) -> int:
        told.append(client.number)
        if client.number == 0:
            raise SessionLost("gone")
        return client.number

    with pytest.raises(SessionLost, match="gone"):
        on_each_device(act)
    assert told == [0, 1]


def test_a_device_that_comes_later_does_as_was_chosen() -> None:
    with make("cupyx.errstate")(linalg="raise"):
        later = Beside(current())
        later.members = (*current().members, later)
        assert later.part(ErrorState).linalg_may_raise
        assert later.part(ErrorState).linalg == "raise"


def test_who_was_left_says_nothing_of_who_is_there() -> None:
    first = current()
    before = first.wishes.apart
    first.wishes.apart = "notebook-1"
    left = Beside(first)
    left.members, left.number = first.members, 1
    left.over = "left"
    with pytest.raises(SessionLost, match="left"):
        _ = left.session
    assert first.wishes.apart == "notebook-1"
    first.wishes.apart = before


def test_a_copy_has_the_bits_of_what_it_copies() -> None:
    signed = cp.asarray([-0.0, 1.0])
    with cp.cuda.Device(1):
        for made in (cp.asarray(signed[0]), signed[0].copy(), cp.array(signed[0]), cp.asarray(signed[0], dtype="f4")):
            assert np.signbit(made.get())


def test_what_cannot_be_had_is_said_before_its_contents_travel(executor: InProcess) -> None:
    x = cp.ones(12 << 20, "u1")
    assert x.nbytes > transfer.CHUNK_BYTES
    device = executor.device
    with cp.cuda.Device(1):
        cp.cuda.Device(1).synchronize()
        sent = current().pipeline.counters.sent_bytes
        before = sum(sent.values())
        device.set_memory_limit(device.held_bytes(1) + (1 << 20))
        current().memory.set_limit(device.held_bytes(1) + (1 << 20))
        try:
            with pytest.raises(cp.cuda.memory.OutOfMemoryError):
                cp.asarray(x)
        finally:
            device.set_memory_limit(0)
            current().memory.set_limit(0)
        assert sum(sent.values()) == before


def test_devices_are_told_by_all_kinds_of_numbers() -> None:
    runtime = cp.cuda.runtime
    for number in np.arange(2):
        assert runtime.getDeviceProperties(number) == runtime.getDeviceProperties(device=int(number))
    assert runtime.deviceGetAttribute(runtime.cudaDevAttrWarpSize, np.int32(1)) == 32
    with pytest.raises(runtime.CUDARuntimeError, match="cudaErrorPeerAccessUnsupported"):
        runtime.deviceEnablePeerAccess(1)
    with cp.cuda.Device(1):
        assert cp.arange(2).__dlpack_device__() == (2, 1)


def test_an_address_that_two_executors_have_is_nobodys() -> None:
    x = cp.arange(4.0)
    with cp.cuda.Device(1):
        y = cp.arange(4.0) + 1
    for array in (x, y):
        foreign_arrays.hand_out(array, 1 << 40)
    described = SimpleNamespace(
        __cuda_array_interface__={"shape": (4,), "typestr": "<f8", "data": (1 << 40, False), "version": 3}
    )
    with pytest.raises(ValueError, match="Arrays of 2 devices lie at 0x10000000000"):
        cp.asarray(described)


@pytest.mark.parametrize("then", [PoolFull, KeyboardInterrupt])
def test_who_could_not_have_all_is_alone_again(
    then: type[BaseException], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Client(ClientSettings(gateway="tcp://127.0.0.1:9", server_key="", key_file=tmp_path / "none"))
    client.wishes.devices = 2
    asked: list[tuple[int, int]] = []

    def refuse(label: str = "", may_wait: bool = True, sessions: int = 1) -> Session:
        asked.append((client.wishes.wished(client.settings).wish.devices, sessions))
        raise NoDevice("none has two") if len(asked) == 1 else then("full")

    monkeypatch.setattr(client, "open", refuse)
    with pytest.raises(then):
        _ = client.session
    assert (asked, client.members, client.wishes.apart) == ([(2, 1), (1, 2)], (), "")
    assert client.wishes.wished(client.settings).wish.devices == 2


def test_arrays_of_a_device_that_was_left_say_so() -> None:
    left = Beside(current())
    left.number = 1
    left.close()
    gone = pytest.raises(SessionLost, match="This belongs to device 1 of a session that was left")
    with gone:
        _ = left.session
    with gone:
        common(left, current())
