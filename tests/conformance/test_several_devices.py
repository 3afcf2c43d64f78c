"""Several devices in one notebook: where arrays are made, what is copied, and what is refused, as in CuPy."""

from __future__ import annotations

import copy
import gc
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from kernelproxy.mirror.host_mirror import Mode
from tests.conformance.asked_of_views import REMOTE as cp
from tests.conformance.in_process import InProcess, mirrored, notebook_on_two


@pytest.fixture(scope="module", params=["cpu", "apart", pytest.param("cuda", marks=pytest.mark.gpu)])
def executor(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    with notebook_on_two(request.param, tmp_path_factory.mktemp("kernels")) as one:
        yield one


@pytest.fixture(autouse=True)
def on_the_first(executor: InProcess) -> Iterator[None]:
    yield
    cp.cuda.Device(0).use()


def host(array: Any) -> np.ndarray[Any, Any]:
    return cp.asnumpy(array)


def test_arrays_are_made_on_the_current_device(executor: InProcess) -> None:
    assert cp.cuda.runtime.getDeviceCount() == 2
    x = cp.arange(4)
    with cp.cuda.Device(1) as one:
        assert (one.id, cp.cuda.runtime.getDevice(), cp.cuda.get_device_id(), cp.cuda.Device().id) == (1, 1, 1, 1)
        made = [cp.arange(4), cp.asarray([1, 2]), cp.asarray(np.ones(3)), cp.random.rand(3), cp.full((2, 2), 7.0)]
        made += [made[0] * 2 + 1, made[0].sum(), made[0][1:3], cp.concatenate([made[0], made[1]]), made[2].copy()]
    assert cp.cuda.Device().id == 0
    assert [array.device.id for array in made] == [1] * len(made)
    assert x.device == cp.cuda.Device(0) == cp.zeros(2).device
    np.testing.assert_array_equal(host(made[5]), np.arange(4) * 2 + 1)
    np.testing.assert_array_equal(host(made[8]), [0, 1, 2, 3, 1, 2])


def test_use_lasts_and_blocks_nest(executor: InProcess) -> None:
    cp.cuda.Device(1).use()
    assert cp.zeros(1).device.id == 1
    with cp.cuda.Device(0):
        assert cp.zeros(1).device.id == 0
        cp.cuda.runtime.setDevice(1)
        assert cp.zeros(1).device.id == 1
    assert cp.zeros(1).device.id == 1
    device = cp.cuda.Device(0)
    with device, cp.cuda.Device(1), device:
        assert cp.cuda.Device().id == 0
    assert cp.cuda.Device().id == 1


def test_each_thread_has_its_own_device(executor: InProcess) -> None:
    found = []

    def work() -> None:
        found.append(cp.cuda.Device().id)
        cp.cuda.Device(1).use()
        found.append(cp.ones(3).device.id)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [0, 1]
    assert cp.ones(3).device.id == 0


@pytest.mark.parametrize("number", [2, 7, -1])
def test_a_device_that_is_not_there(executor: InProcess, number: int) -> None:
    refused = pytest.raises(cp.cuda.runtime.CUDARuntimeError, match="cudaErrorInvalidDevice: invalid device ordinal")
    with refused, cp.cuda.Device(number):
        pass
    with refused:
        cp.cuda.Device(number).use()
    with refused:
        cp.cuda.runtime.setDevice(number)
    assert cp.cuda.Device().id == 0


@pytest.mark.parametrize(
    "how", ["asarray", "array", "copy", "copy function", "asanyarray", "copyto", "store", "device block"]
)
def test_arrays_are_copied_from_device_to_device(executor: InProcess, how: str) -> None:
    x = cp.arange(12, dtype="f4").reshape(3, 4) * 3
    with cp.cuda.Device(1):
        target = cp.zeros((3, 4), "f4")
        if how == "copyto":
            cp.copyto(target, x)
            made = target
        elif how == "store":
            target[...] = x
            made = target
        elif how == "device block":
            made = cp.asarray(x[1:])
        else:
            makers = {"copy": lambda: x.copy(), "copy function": lambda: cp.copy(x)}
            made = makers.get(how, lambda: getattr(cp, how)(x))()
        assert made.device.id == 1
        again = made + 1
    assert again.device.id == 1
    x *= 0  # a copy is its own
    expected = np.arange(12, dtype="f4").reshape(3, 4) * 3
    np.testing.assert_array_equal(host(made), expected[1:] if how == "device block" else expected)
    np.testing.assert_array_equal(host(again), host(made) + 1)


def test_asarray_of_what_is_here_is_the_same_array(executor: InProcess) -> None:
    x = cp.arange(3)
    assert cp.asarray(x) is x
    with cp.cuda.Device(1):
        moved = cp.asarray(x)
        assert moved is not x
        assert cp.asarray(moved) is moved
    assert cp.asarray(x) is x


@pytest.mark.parametrize("take", [lambda x: x[:, ::2], lambda x: x[::2], lambda x: cp.broadcast_to(x[0], (3, 4))])
def test_what_has_gaps_is_copied_if_it_may_lie_otherwise(executor: InProcess, take: Callable[[Any], Any]) -> None:
    window = take(cp.arange(12.0).reshape(3, 4))
    with cp.cuda.Device(1):
        keep = [cp.asarray, cp.array, cp.copy, lambda x: x.copy("K"), lambda x: cp.array(x, "f4")]
        for bring in keep:
            with pytest.raises(NotImplementedError, match="CuPy cannot copy non-contiguous array between devices"):
                bring(window)
        made = [window.copy(), window.copy("F"), cp.copy(window, order="A"), cp.asarray(window, order="C")]
        target = cp.zeros_like(window)
        cp.copyto(target, window)
        for one in (*made, target):
            assert one.device.id == 1
            np.testing.assert_array_equal(host(one), host(window))


def test_what_makes_no_use_of_an_arrays_contents_works_wherever_it_is(executor: InProcess) -> None:
    x = cp.arange(6.0).reshape(2, 3)
    with cp.cuda.Device(1):
        like = [cp.zeros_like(x), cp.ones_like(x), cp.full_like(x, 2.0), cp.empty_like(x)]
        assert [one.device.id for one in like] == [1] * 4
        assert [float(one.sum()) for one in like[:3]] == [0.0, 6.0, 12.0]
        windows = [cp.squeeze(x), cp.ascontiguousarray(x), cp.asfortranarray(x.T), x.reshape(-1)]
        windows.append(cp.lib.stride_tricks.as_strided(x, (2,), (8,)))
        assert [one.device.id for one in windows] == [0] * 5
        copies = [cp.copy(a=x), cp.array(obj=x), cp.asarray(a=x), copy.copy(x), cp.ravel(x[:, ::2])]
        copies += [cp.atleast_2d(x), cp.atleast_3d(x), *cp.atleast_1d(x, x)]
        assert [one.device.id for one in copies] == [1] * 9
        deep = copy.deepcopy(x)  # which takes the array with its device
    assert deep.device.id == 0
    windows[-1][:] = 7.0
    np.testing.assert_array_equal(host(x), [[7, 7, 2], [3, 4, 5]])
    np.testing.assert_array_equal(host(deep), [[0, 1, 2], [3, 4, 5]])


@pytest.mark.parametrize(
    "read",
    [
        lambda x: x[x > 2.0] if x.device.id == cp.cuda.Device().id else x[cp.asarray(x) > 2.0],
        lambda x: x[[0, 2]],
        lambda x: x[cp.asarray([0, 2])],
        lambda x: cp.asarray([x, x]),
        lambda x: cp.ascontiguousarray(x[::2]),
        lambda x: cp.copyto(cp.zeros(6), x, where=cp.ones(6, bool)),
        lambda x: cp.ElementwiseKernel("float64 x", "float64 y", "y = x", "read")(x),
        lambda x: cp.ReductionKernel("float64 x", "float64 y", "x", "a + b", "y = a", "0", "summed")(x),
    ],
)
def test_whatever_a_kernel_would_read_there_is_refused(executor: InProcess, read: Callable[[Any], Any]) -> None:
    if cp.cuda.runtime.deviceCanAccessPeer(1, 0):
        pytest.skip("here nothing is refused")
    x = cp.arange(6.0)
    read(x)
    with cp.cuda.Device(1), pytest.raises(ValueError, match="Peer access is unavailable"):
        read(x)


def test_what_reads_another_device_is_refused_or_warned_of(executor: InProcess) -> None:
    x = cp.arange(6.0)
    can_reach = bool(cp.cuda.runtime.deviceCanAccessPeer(1, 0))
    with cp.cuda.Device(1):
        y = cp.ones(6)
        computations = [lambda: x + y, lambda: y + x, lambda: x * 2, lambda: cp.concatenate([x, y])]
        if not can_reach:  # by CUB, CuPy reduces without a look
            computations.append(lambda: x.sum())
        for compute in computations:
            words = r"The device where the array resides \(0\) is different from the current device \(1\)\. "
            if can_reach:
                with pytest.warns(Warning, match=words):
                    made = compute()
                assert made.device.id == 1
            else:
                with pytest.raises(ValueError, match=words + r"Peer access is unavailable between these devices\."):
                    compute()
        np.testing.assert_array_equal(host(y), np.ones(6))
    np.testing.assert_array_equal(host(x + 1), np.arange(6.0) + 1)


def test_in_place_on_another_device(executor: InProcess) -> None:
    x = cp.arange(6.0)
    if cp.cuda.runtime.deviceCanAccessPeer(1, 0):
        with cp.cuda.Device(1), pytest.warns(Warning, match="Peer access has been activated"):
            x += 1
        expected = np.arange(6.0) + 1
    else:
        with cp.cuda.Device(1), pytest.raises(ValueError, match="Peer access is unavailable"):
            x += 1
        expected = np.arange(6.0)
    np.testing.assert_array_equal(host(x), expected)
    assert x.device.id == 0


def test_views_and_reads_work_wherever_the_array_is(executor: InProcess) -> None:
    x = cp.arange(12).reshape(3, 4)
    with cp.cuda.Device(1):
        part = x[1:, ::2].T
        assert part.device.id == 0
        np.testing.assert_array_equal(host(part), np.arange(12).reshape(3, 4)[1:, ::2].T)
        assert (int(x[2, 3]), x.tolist()[1], x.get().sum()) == (11, [4, 5, 6, 7], 66)
        large = cp.asarray(np.arange(3_000_000, dtype="f8"))
    np.testing.assert_array_equal(host(large), np.arange(3_000_000))
    large.set(np.ones(3_000_000))
    assert host(large).sum() == 3_000_000
    assert large.data.device_id == large.data.device.id == 1


def test_streams_and_events_belong_to_a_device(executor: InProcess) -> None:
    first = cp.cuda.Stream()
    with cp.cuda.Device(1):
        second = cp.cuda.Stream(non_blocking=True)
        assert (first.device_id, second.device_id, cp.cuda.Stream.null.device_id) == (0, 1, -1)
        with pytest.raises(RuntimeError, match=r"created on \(0\) does not match with the current device \(1\)"), first:
            pass
        with second:
            begin, end = cp.cuda.Event(), cp.cuda.Event()
            begin.record()
            x = cp.arange(1000) + 1
            end.record()
            assert cp.cuda.get_current_stream() == second
            assert (cp.cuda.get_current_stream(0), x.device.id) == (cp.cuda.Stream.null, 1)
        second.synchronize()
        assert cp.cuda.get_elapsed_time(begin, end) >= 0
        second.use()
        with cp.cuda.Device(0):
            assert cp.cuda.get_current_stream() == cp.cuda.Stream.null
            assert cp.zeros(1).device.id == 0
        assert cp.cuda.get_current_stream() == second
        cp.cuda.Stream.null.use()
    assert cp.cuda.get_current_stream() == cp.cuda.Stream.null
    cp.cuda.Device(1).synchronize()
    np.testing.assert_array_equal(host(x), np.arange(1000) + 1)


def test_memory_is_counted_by_device(executor: InProcess) -> None:
    pool = cp.get_default_memory_pool()
    cp.cuda.Device(0).synchronize()  # what was dropped is gone
    before = [executor.device.held_bytes(number) for number in range(2)]
    with cp.cuda.Device(1):
        block = cp.zeros(1 << 20, "u1")
        assert pool.used_bytes() == before[1] + (1 << 20)
    assert pool.used_bytes() == before[0]
    assert [executor.device.held_bytes(number) for number in range(2)] == [before[0], before[1] + (1 << 20)]
    free, total = cp.cuda.Device(1).mem_info
    assert 0 < free <= total
    del block
    cp.cuda.Device(1).synchronize()
    assert executor.device.held_bytes(1) == before[1]


def test_the_limit_holds_on_each_device(executor: InProcess) -> None:
    device = executor.device
    gc.collect()  # errors of other tests hold arrays
    cp.cuda.Device(0).synchronize()
    before = [device.held_bytes(number) for number in (0, 1)]
    fuller = before.index(max(before))
    with cp.cuda.Device(1 - fuller):  # as much is held of the one as of the other
        filling = cp.zeros(max(1, before[fuller] - before[1 - fuller]), "u1")
        assert int(filling.sum()) == 0
    least, most = sorted([device.held_bytes(0), device.held_bytes(1)])
    assert most - least < 1 << 20
    device.set_memory_limit(most + (8 << 20))
    try:
        held = [cp.zeros(6 << 20, "u1")]
        with cp.cuda.Device(1):
            held.append(cp.zeros(6 << 20, "u1"))  # as much again, on another device
            assert int(held[1].sum()) == 0
            assert least + (6 << 20) <= device.held_bytes(1) < most + (7 << 20)
            with pytest.raises(cp.cuda.memory.OutOfMemoryError):
                int(cp.zeros(6 << 20, "u1").sum())
    finally:
        device.set_memory_limit(0)
    assert int(held[0].sum()) == 0


def test_a_copy_needs_the_memory_of_the_copy(executor: InProcess) -> None:
    device = executor.device
    cp.cuda.Device(0).synchronize()
    x = cp.ones(6 << 20, "u1")
    device.set_memory_limit(max(device.held_bytes(0), device.held_bytes(1)) + (8 << 20))
    try:
        with cp.cuda.Device(1):
            y = cp.asarray(x)
            for _ in range(3):  # none of these needs any
                y[...] = x
                cp.copyto(y, x)
                cp.copyto(x, y)
            assert int(y[-1]) == 1
    finally:
        device.set_memory_limit(0)


def test_random_numbers_are_drawn_by_device(executor: InProcess) -> None:
    drawn = []
    for number in (0, 1, 1):
        with cp.cuda.Device(number):
            cp.random.seed(7)
            drawn.append(host(cp.random.rand(4)))
    np.testing.assert_array_equal(drawn[0], drawn[1])
    with cp.cuda.Device(1):
        cp.random.seed(7)
        with cp.cuda.Device(0):
            cp.random.rand(100)
        np.testing.assert_array_equal(host(cp.random.rand(4)), drawn[1])


def test_properties_and_numbers_of_devices(executor: InProcess) -> None:
    assert cp.cuda.Device(0) < cp.cuda.Device(1) != cp.cuda.Device(0)
    buses = [cp.cuda.Device(number).pci_bus_id for number in range(2)]
    numbers = [cp.cuda.Device.from_pci_bus_id(bus).id for bus in buses]
    assert numbers == ([0, 1] if executor.is_on_one_host else [0, 0])  # each host has buses of its own
    assert cp.cuda.runtime.getDeviceProperties(1)["name"]
    assert cp.cuda.Device(1).attributes["WarpSize"] == 32
    assert cp.cuda.Device(1).compute_capability == cp.cuda.Device(0).compute_capability


@pytest.mark.parametrize("mode", [Mode.OFF, Mode.ON])
def test_a_store_that_is_refused_changes_nothing(executor: InProcess, mode: Mode) -> None:
    """Nor what the notebook takes to be there."""
    if cp.cuda.runtime.deviceCanAccessPeer(1, 0):
        pytest.skip("here nothing is refused")
    with mirrored(mode):
        x = cp.arange(4.0)
        short = x.astype("f4")
        with cp.cuda.Device(1):
            y = cp.zeros(6)
            for key, value in ((slice(None, None, 2), x[:3]), (slice(1, 3), x[::2]), (slice(None, 4), short)):
                with pytest.raises(ValueError, match="Peer access is unavailable"):
                    y[key] = value
            with pytest.raises(ValueError, match="Peer access is unavailable"):
                x[1:] = 7.0
            assert (y.tolist(), x.tolist()) == ([0.0] * 6, [0.0, 1.0, 2.0, 3.0])


def test_memory_of_what_was_dropped_serves_no_other_device(executor: InProcess) -> None:
    size = 800_000
    a = cp.ones(size // 8)
    with cp.cuda.Device(1):
        b = cp.ones(size // 8)
        cp.cuda.Device(1).synchronize()
        before = [executor.device.held_bytes(number) for number in range(2)]
        del a
        c = b * 2
        cp.cuda.Device(1).synchronize()
    rounded = executor.device.held_bytes(1) - before[1]
    assert size <= rounded < size + 1024
    assert executor.device.held_bytes(0) == before[0] - rounded
    np.testing.assert_array_equal(host(c), np.full(size // 8, 2.0))


def test_what_reads_another_devices_memory_comes_after_what_is_written_there(executor: InProcess) -> None:
    if not cp.cuda.runtime.deviceCanAccessPeer(0, 1):
        pytest.skip("needs devices that reach each other's memory")
    a = cp.ones((4096, 4096), "f4")
    for turn in range(5):
        x = cp.zeros(8, "f4")
        b = a
        for _ in range(20):  # for some milliseconds
            b = b @ a / 4096
        x += b[:8, 0] + turn
        with cp.cuda.Device(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it reaches over
            y = x * 2
        x[...] = 0  # behind what still reads it
        np.testing.assert_array_equal(host(y), np.full(8, 2.0 * (turn + 1)))
