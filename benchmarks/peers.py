"""Copies from device to device in one notebook, of all sizes, beside native CuPy on the same two GPUs in one run.

``python benchmarks/peers.py`` starts a pool of its own, which lets a session have both GPUs, and two processes: native
CuPy, and CuPy through the pool. They copy in turns, copies are timed to the ``synchronize`` behind them, and the best
of each counts; of small ones many go at once. Below the table stands how many bytes passed through the notebook's
process. It ends within a minute; nothing is written. Without GPUs two of the pool's CPU devices copy, beside nobody.

``--apart`` has each device come from a session of its own, on two machines that are played on this host; with one GPU
both have that. Then what is copied passes from executor to executor.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from contextlib import ExitStack
from time import perf_counter
from typing import Any

SIZES = tuple(1 << power for power in (12, 16, 20, 24, 28, 30))
_TURNS = 3
#: How long a side copies in one turn, seconds; and so much goes at once, bytes.
_SECONDS = 0.3
_AT_ONCE, _MOST_AT_ONCE = 1 << 30, 32


def best(cupy: Any, size: int) -> float:
    """Return the least seconds that a copy of ``size`` bytes took."""
    with cupy.cuda.Device(0):
        source = cupy.arange(size // 4, dtype="u4")
    with cupy.cuda.Device(1):
        target = cupy.empty(size // 4, dtype="u4")
        count, times = max(1, min(_MOST_AT_ONCE, _AT_ONCE // size)), [1.0]
        until = perf_counter() + _SECONDS
        while perf_counter() < until:
            target[...] = 0
            for number in (0, 1):
                cupy.cuda.Device(number).synchronize()
            begun = perf_counter()
            for _ in range(count):
                target[...] = source
            cupy.cuda.Device(1).synchronize()
            times.append((perf_counter() - begun) / count)
        if int(target[-1]) != size // 4 - 1:
            raise AssertionError(f"a copy of {size} bytes differs")
    return min(times)


def serve(which: str) -> None:
    """Copy the sizes that come in, a line each; tell the seconds, and how many bytes of arrays passed this process."""
    passed: Any = int
    if which == "remote":
        import kernelproxy

        kernelproxy.activate()
        from kernelproxy.client import current

        _ = kernelproxy.current_session()
        all_counters = [one.pipeline.counters for one in current().members or (current(),)]

        def passed() -> int:
            return sum(
                count for one in all_counters for count in (*one.sent_bytes.values(), *one.received_bytes.values())
            )

    import cupy

    for line in sys.stdin:
        print(json.dumps([best(cupy, int(line)), passed()]), flush=True)


class Side:
    """A process that copies as it is told."""

    def __init__(self, which: str, environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--as", which], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True,
        )  # fmt: skip

    def __enter__(self) -> Side:
        return self

    def __exit__(self, *of: object) -> None:
        self._process.communicate()

    def copy(self, size: int) -> tuple[float, int]:
        """Have ``size`` bytes copied; return the seconds, and the bytes that have passed the process so far."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{size}\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("A side ended; what it said stands above.")
        seconds, passed = json.loads(line)
        return seconds, passed


def measure(device: str, is_apart: bool) -> tuple[str, dict[int, dict[str, float]], int]:
    """Return what the devices are, the best of each size and side, and the bytes that passed the notebook's process."""
    from remoting_pool import OwnPool
    from second_machine import heard_by_machines, second_machine

    from gpu_backend.node.inventory import devices

    gpus = sum(one.kind == "cuda" for one in devices("auto", 0))
    kind = ("cuda" if gpus > 1 or (gpus and is_apart) else "cpu") if device == "auto" else device
    several: dict[str, Any] = {"several_gpus": "at-your-own-risk"} if kind == "cuda" else {"cpu_devices": 2}
    if is_apart:
        several = heard_by_machines()
    found: dict[int, dict[str, float]] = {}
    passed = 0
    with ExitStack() as stack:
        pool = stack.enter_context(OwnPool(kind, **several))
        if is_apart:
            stack.enter_context(second_machine(pool.state, kind))
        environment = {**pool.environment, "GPU_WORKBENCH_DEVICES": "2"}
        which = ("native", "remote") if kind == "cuda" and gpus > 1 else ("remote",)
        sides = {one: stack.enter_context(Side(one, environment)) for one in which}
        for size in SIZES if kind == "cuda" else SIZES[:3]:
            turns = [{one: side.copy(size) for one, side in sides.items()} for _ in range(_TURNS)]
            found[size] = {one: min(turn[one][0] for turn in turns) for one in sides}
            passed = turns[-1]["remote"][1]
        name = pool.view().devices[0].name
    return name, found, passed


def show(name: str, found: dict[int, dict[str, float]], passed: int) -> None:
    """Print the table: times, bytes a second, and how many times native's speed that is."""
    print(f"copies from one {name} to another")
    for size, sides in found.items():
        cells = [f"{one} {seconds * 1e6:9.1f} µs {size / seconds / 1e9:7.1f} GB/s" for one, seconds in sides.items()]
        ratio = f"  {sides['native'] / sides['remote']:.2f} × native's speed" if "native" in sides else ""
        print(f"{size >> 10:>9,} KiB  " + "  ".join(cells) + ratio)
    print(f"{passed:,} bytes of arrays passed the notebook's process, with the last element of each copy, to compare")


def main() -> None:
    """Run one side, or both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=("auto", "cuda", "cpu"), default="auto", help="what to copy between")
    parser.add_argument("--as", dest="which", choices=("native", "remote"), help=argparse.SUPPRESS)
    parser.add_argument("--apart", action="store_true", help="have each device come from a session of its own")
    options = parser.parse_args()
    if options.which is not None:
        serve(options.which)
    else:
        show(*measure(options.device, options.apart))


if __name__ == "__main__":
    main()
