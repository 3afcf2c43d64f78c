"""What `systems.py` measures of systems that reach a GPU from afar or lend it or its memory."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from time import monotonic, perf_counter, sleep
from typing import Any

import msgspec
from far_links import far_links, port_range
from remoting_pool import OwnPool

_HERE = Path(__file__).parent
_SIDE_SECONDS = 180
#: Links beside the host's own way, by the round trip that is added, seconds.
_LINKS = {"1 ms": 1e-3, "10 ms": 10e-3}
_WAIT_SECONDS = 60.0
#: Memory that a session asks for, and what it takes at a time.
_MEMORY_BYTES, _PIECE_BYTES = 512 << 20, 16 << 20

Raw = dict[str, Any]


def measure_links(device: str, is_quick: bool, runs: int) -> tuple[list[Raw], str]:
    """Return what native CuPy and CuPy over each link do, run by run, and the device's kind."""
    ports = port_range()
    with OwnPool(device, executor_ports=ports) as pool, far_links(pool.config, ports, [*_LINKS.values()]) as far:
        links = {"local": pool.config, "TLS": pool.config, **dict(zip(_LINKS, far, strict=True))}
        order = json.dumps({"is_quick": is_quick, "links": {name: str(config) for name, config in links.items()}})
        found = []
        for _ in range(runs):
            native = _side("native", pool.device_kind, order)
            found.append({"native": native, **_side("remote", pool.device_kind, order, pool.environment)})
            refuse_known_values(found[-1])
    return found, pool.device_kind


def refuse_known_values(raw: Raw) -> None:
    """Refuse a run whose values came sooner than the link allows: the client knew them, and nothing was fetched.

    Raises
    ------
    RuntimeError
        With the link on which it was so.
    """
    for name, round_trip in _LINKS.items():
        if raw[name]["value"] < round_trip:
            raise RuntimeError(
                f"a value was there after {raw[name]['value'] * 1e3:.3g} ms over a link with {name} of round trip, so "
                "that the client knew it; measure with the host mirror off"
            )


def measure_places(device: str, runs: int) -> list[Raw]:
    """Return how long places on a GPU take to be had and given back, run by run, seconds."""
    import kernelproxy

    kernelproxy.activate()
    with OwnPool(device, sessions_per_device=1) as pool:
        found = [_one_place(pool) for _ in range(runs)]
    with OwnPool(device, warm_executors_per_device=0) as pool:
        for each in found:
            client = _client(pool)
            each["cold_start"] = _first_value(client)
            client.close()
            _until(lambda: not pool.view().sessions, "the session's end")
    return found


def _one_place(pool: OwnPool) -> Raw:
    pool.wait_for_warm()
    holder, waiter = _client(pool), _client(pool)
    raw: Raw = {"start": _first_value(holder)}
    ends: list[float] = []

    def wait() -> None:
        _first_value(waiter)
        ends.append(perf_counter())

    _until(lambda: pool.is_warm, "an executor for the second")
    waiting = threading.Thread(target=wait)
    waiting.start()
    _until(lambda: bool(pool.view().waiting), "the second in the queue")
    given_back = perf_counter()
    holder.close()
    waiting.join(_WAIT_SECONDS)
    if not ends:
        raise RuntimeError("who waited for the place got none")
    raw["hand_over"] = ends[0] - given_back
    given_back = perf_counter()
    waiter.close()
    _until(lambda: not pool.view().sessions, "the session's end")
    raw["detach"] = perf_counter() - given_back
    raw["memory_taken"] = _memory_taken(pool)
    return raw


def _memory_taken(pool: OwnPool) -> float:
    """Return how much of the memory that it asked for a session gets before it is refused more."""
    import cupy as cp

    pool.wait_for_warm()
    client, held = _client(pool, memory=str(_MEMORY_BYTES)), []
    try:
        with client:
            while len(held) * _PIECE_BYTES < 2 * _MEMORY_BYTES:
                held.append(cp.zeros(_PIECE_BYTES, dtype=cp.uint8))
                cp.cuda.get_current_stream().synchronize()
    except MemoryError:
        held.pop()  # which was not had
    taken = len(held) * _PIECE_BYTES / _MEMORY_BYTES
    held.clear()
    client.close()
    _until(lambda: not pool.view().sessions, "the session's end")
    return taken


def _client(pool: OwnPool, **wishes: str) -> Any:
    from kernelproxy import Client, settings

    # as in the environment of a side: a value that the client knows by itself is none from the device
    return Client(msgspec.structs.replace(settings.load(pool.config), host_mirror="off", **wishes))


def _first_value(client: Any) -> float:
    """Return how long it takes from nothing to a value from the device, seconds."""
    import cupy as cp

    start = perf_counter()
    with client:
        if float(cp.ones(3).sum()) != 3:
            raise AssertionError("the first value is wrong")
    return perf_counter() - start


def _until(is_so: Callable[[], bool], what: str) -> None:
    deadline = monotonic() + _WAIT_SECONDS
    while not is_so():
        if monotonic() > deadline:
            raise RuntimeError(f"waited {_WAIT_SECONDS:g} s for {what}")
        sleep(0.001)


def _side(which: str, device: str, order: str, environment: dict[str, str] | None = None) -> Raw:
    command = [sys.executable, str(_HERE / "systems_side.py"), which, device, order]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=_SIDE_SECONDS, check=False)
    if done.returncode:
        raise RuntimeError(f"the {which} side failed:\n{done.stderr[-2_000:]}")
    found: Raw = json.loads(done.stdout.splitlines()[-1])
    return found


# --- figures --------------------------------------------------------------------------------------------------------


def link_figures(raw: Raw) -> dict[tuple[str, str], float]:
    """Return the figures of one run of `measure_links`, by system and name."""
    native, local, near, far = raw["native"], raw["local"], raw["1 ms"], raw["10 ms"]
    whole, resident = _added(native, local, "upload", "compute", "download"), _added(native, near, "compute")
    chain = 100 * (near["chain"] / native["chain"] - 1)
    added = _LINKS["10 ms"] - _LINKS["1 ms"]
    return {
        ("rcuda", "overhead"): whole,
        ("rcuda", "overhead-far"): _added(native, near, "upload", "compute", "download"),
        ("rcuda", "bandwidth-kept"): 100 * local["upload_gbs"] / native["upload_gbs"],
        ("lupine", "resident-overhead"): resident,
        ("lupine", "value-round-trips"): (far["value"] - near["value"]) / added,
        ("lupine", "chain-overhead"): chain,
        ("dgsf", "batching"): 100 * (1 - near["chain"] / near["awaited"]),
        ("dxpu", "overhead"): whole,
        ("fractos", "chain-gain"): 100 * (near["awaited"] / near["chain"] - 1),
        ("orionx", "shared-memory-gain"): local["upload_gbs"] / raw["TLS"]["upload_gbs"],
    }


def place_figures(raw: Raw) -> dict[tuple[str, str], float]:
    """Return the figures of one run of `measure_places`, by system and name."""
    return {
        ("dgsf", "start"): raw["start"],
        ("dgsf", "start-saved"): raw["cold_start"] - raw["start"],
        ("dgsf", "hand-over"): raw["hand_over"],
        ("dxpu", "attach"): raw["start"],
        ("dxpu", "detach"): raw["detach"],
        ("osr2023-serverless-gpu", "start-saved"): raw["cold_start"] - raw["start"],
        ("bitfusion", "memory-taken"): 100 * raw["memory_taken"],
        ("orionx", "memory-taken"): 100 * raw["memory_taken"],
    }


def _added(native: Raw, remote: Raw, *parts: str) -> float:
    """Return by how many per cent those parts of the largest matrices take longer."""
    largest = max(native["matrices"], key=int)
    ours, theirs = (sum(side["matrices"][largest][part] for part in parts) for side in (remote, native))
    return 100 * (ours / theirs - 1)
