"""Streams, events, devices, threads."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import cupy as cp
from expecting import refused

CUDARuntimeError = cp.cuda.runtime.CUDARuntimeError

one, two = cp.cuda.Stream(), cp.cuda.Stream(non_blocking=True)
with one as entered:
    assert entered is one
    assert cp.cuda.get_current_stream() == one
    a = cp.arange(10)
    one.synchronize()
    with two:
        assert cp.cuda.get_current_stream() == two
        b = a * 2
    assert cp.cuda.get_current_stream() == one
assert cp.cuda.get_current_stream() == cp.cuda.Stream.null != cp.cuda.Stream.ptds
two.synchronize()
assert int(b.sum()) == 90
one.use()
assert cp.cuda.get_current_stream() == one != two
cp.cuda.Stream.null.use()
assert (cp.cuda.Stream.null.ptr, cp.cuda.Stream.ptds.ptr) == (0, 2)
assert cp.cuda.Stream(null=True) == cp.cuda.Stream.null
assert one.ptr != two.ptr
assert two.is_non_blocking
assert not one.is_non_blocking
assert one.done
assert not one.is_capturing()
with cp.cuda.ExternalStream(one.ptr):
    c = cp.arange(3)
one.synchronize()
assert int(c.sum()) == 3

# --- events ----------------------------------------------------------------------------------------------------------

start, end = cp.cuda.Event(), cp.cuda.Event()
start.record()
cp.ones((500, 500)) @ cp.ones((500, 500))
end.record()
end.synchronize()
assert cp.cuda.get_elapsed_time(start, end) > 0
assert end.done
event = one.record()
two.wait_event(event)
event.synchronize()
refused(CUDARuntimeError, lambda: cp.cuda.get_elapsed_time(cp.cuda.Event(disable_timing=True), end))
said: list[object] = []
one.launch_host_func(said.append, 5)
one.synchronize()
assert said == [5]

# --- threads and coroutines ------------------------------------------------------------------------------------------

seen: dict[int, tuple[float, bool]] = {}


def work(number: int) -> None:
    stream = cp.cuda.Stream(non_blocking=True)
    with stream:
        x = cp.zeros(100)
        for _ in range(50):
            x += number
        seen[number] = float(x[0]), cp.cuda.get_current_stream() == stream
    stream.synchronize()


threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert seen == {number: (50.0 * number, True) for number in range(6)}
with ThreadPoolExecutor(4) as pool:
    sums = list(pool.map(lambda n: float(cp.arange(n + 1).sum()), range(20)))
assert sums == [n * (n + 1) / 2 for n in range(20)]


async def add(n: int) -> float:
    x = cp.full(3, n)
    await asyncio.to_thread(lambda: None)
    return float(x.sum())


async def together() -> list[float]:
    return await asyncio.gather(*map(add, range(5)), asyncio.to_thread(lambda: float(cp.ones(3).sum())))


assert asyncio.run(together()) == [0, 3, 6, 9, 12, 3]

# --- the device ------------------------------------------------------------------------------------------------------

device = cp.cuda.Device()
assert device == cp.cuda.Device(0)
assert (device.id, int(device)) == (0, 0)
with cp.cuda.Device(0):
    assert cp.arange(3).device == device
assert int(device.compute_capability) >= 70
assert str(cp.cuda.Stream.null) == repr(cp.cuda.Stream.null) == "<Stream 0 (device -1)>"
assert isinstance(device.attributes["MultiProcessorCount"], int)
refused(CUDARuntimeError, lambda: cp.cuda.Device(99).use(), "cudaErrorInvalidDevice")
assert cp.cuda.runtime.getDeviceCount() >= 1
properties = cp.cuda.runtime.getDeviceProperties(0)
assert isinstance(properties["name"], bytes)
assert properties["totalGlobalMem"] > 0
assert cp.cuda.runtime.runtimeGetVersion() > 12000
assert cp.cuda.is_available()
cp.cuda.runtime.deviceSynchronize()
device.synchronize()
