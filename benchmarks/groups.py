"""``all_reduce`` between two processes of a process group, of all sizes.

``python benchmarks/groups.py`` starts a pool of its own and two ranks, a process each, whose sessions share one device,
the GPU where there is one. They call `NCCLBackend.all_reduce` in turns of many at once, timed to the ``synchronize``
behind them, and the best of some turns counts. Bytes a second are those of the array by the time of a call. It ends
within two minutes; nothing is written.

``--apart`` has the second rank on another machine, which is played on this host; with one GPU both have that.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from contextlib import ExitStack
from time import perf_counter
from typing import Any

SIZES = tuple(1 << power for power in (12, 16, 20, 24, 26, 28))
_TURNS = 5
#: So many bytes go in one turn, in so many calls at most.
_AT_ONCE, _MOST_AT_ONCE = 1 << 28, 32


def best(cupy: Any, comm: Any, size: int) -> float:
    """Return the least seconds that a call took for an array of ``size`` bytes."""
    own, total = cupy.full(size // 4, comm.rank + 1, "f4"), cupy.empty(size // 4, "f4")
    count, times = max(1, min(_MOST_AT_ONCE, _AT_ONCE // size)), []
    for _ in range(_TURNS):
        comm.barrier()
        begun = perf_counter()
        for _ in range(count):
            comm.all_reduce(own, total)
        cupy.cuda.Device().synchronize()
        times.append((perf_counter() - begun) / count)
    if float(total[-1]) != 3.0:
        raise AssertionError(f"the sum of {size} bytes is wrong")
    return min(times)


def be_rank(rank: int, sizes: list[int]) -> None:
    """Be one of both; tell the seconds of each size."""
    import kernelproxy

    kernelproxy.activate()
    import cupy
    from cupyx.distributed import init_process_group

    comm = init_process_group(2, rank)
    print(json.dumps([best(cupy, comm, size) for size in sizes]))


def measure(device: str, is_apart: bool) -> tuple[str, dict[int, float]]:
    """Return what the device is, and the seconds of each size."""
    from remoting_pool import OwnPool
    from second_machine import heard_by_machines, second_machine

    from gpu_backend.node.inventory import devices

    kind = device
    if device == "auto":
        kind = "cuda" if any(one.kind == "cuda" for one in devices("auto", 0)) else "cpu"
    sizes = [size for size in SIZES if kind == "cuda" or size <= 1 << 24]
    settings = {**heard_by_machines(), "sessions_per_device": 1} if is_apart else {"sessions_per_device": 2}
    with ExitStack() as stack:
        pool = stack.enter_context(OwnPool(kind, max_sessions_per_user=0, **settings))
        if is_apart:
            stack.enter_context(second_machine(pool.state, kind))
        ranks = [
            subprocess.Popen(
                [sys.executable, __file__, "--rank", str(rank), "--sizes", json.dumps(sizes)],
                env={**os.environ, **pool.environment}, stdout=subprocess.PIPE, text=True,
            )
            for rank in range(2)
        ]  # fmt: skip
        told = [one.communicate()[0] for one in ranks]
        if any(one.returncode for one in ranks):
            raise RuntimeError("A rank failed; what it said stands above.")
        name = pool.view().devices[0].name
    seconds = [max(both) for both in zip(*map(json.loads, told), strict=True)]
    return name, dict(zip(sizes, seconds, strict=True))


def show(name: str, found: dict[int, float], is_apart: bool) -> None:
    """Print the table: times, and bytes a second."""
    print(f"all_reduce of two ranks {'on two machines, each with' if is_apart else 'that share'} one {name}")
    for size, seconds in found.items():
        print(f"{size >> 10:>9,} KiB  {seconds * 1e6:11.1f} µs {size / seconds / 1e9:7.2f} GB/s")


def main() -> None:
    """Be a rank, or measure both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=("auto", "cuda", "cpu"), default="auto", help="what to compute on")
    parser.add_argument("--apart", action="store_true", help="have each rank on a machine of its own")
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--sizes", type=json.loads, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.rank is not None:
        be_rank(options.rank, options.sizes)
    else:
        show(*measure(options.device, options.apart), options.apart)


if __name__ == "__main__":
    main()
