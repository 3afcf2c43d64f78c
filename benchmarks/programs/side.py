"""One side: runs programs by name, as native CuPy or through the pool, as it is told line by line.

``python -m benchmarks.programs`` starts it as ``python -m benchmarks.programs.side native|remote|far``; ``far`` goes
the way of other hosts. It says which programs there are; then a line of JSON comes in for each run
(``{"name": ..., "size": ...}``; ``{}`` for an empty wait), and one goes out.
"""

from __future__ import annotations

import hashlib
import json
import sys
from time import perf_counter
from typing import Any

import numpy as np


def main() -> int:
    """Serve until there are no more lines."""
    which = sys.argv[1]
    if which == "far":
        from gpu_backend.transport import local

        local.is_here = lambda endpoint: False
    if which != "native":
        import kernelproxy

        kernelproxy.activate()
    from benchmarks.programs.registry import load

    programs = load()
    print(json.dumps([[each.name, each.kind, each.full, each.small] for each in programs.values()]), flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        found = measure(programs[order["name"]].run, order["size"], which != "native") if order else wait()
        print(json.dumps(found), flush=True)
    return 0


def wait() -> float:
    """Wait once for the device, which has nothing to do; return seconds."""
    import cupy

    began = perf_counter()
    cupy.cuda.get_current_stream().synchronize()
    return perf_counter() - began


def measure(run: Any, size: int, is_remote: bool) -> dict[str, Any]:
    """Run once, to the last byte on the host; return seconds, what came out, and what it cost.

    ``recorded`` is when the program itself was through: what it takes to ask for results is not in it.
    """
    ways = carried_out() if is_remote else {}
    before = counters() if is_remote else {}
    began = perf_counter()
    results = flat(run(size))
    recorded = perf_counter() - began
    parts = [to_host(part) for part in results]
    seconds = perf_counter() - began
    after = counters() if is_remote else {}
    digest = hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest()[:16]
    norms = [float(np.abs(part.astype(np.float64)).sum()) for part in parts]
    return {
        "seconds": seconds,
        "recorded": recorded,
        "bits": digest,
        "norms": norms,
        "costs": {name: after[name] - before[name] for name in after},
        "ways": {way: count - ways.get(way, 0) for way, count in carried_out().items()} if is_remote else {},
    }


def flat(result: Any) -> list[Any]:
    """Return the parts of a result."""
    return [part for each in result for part in flat(each)] if isinstance(result, tuple) else [result]


def to_host(part: Any) -> np.ndarray:
    """Return a part on the host: complex numbers as pairs."""
    host = np.ascontiguousarray(part.get() if hasattr(part, "get") else part)
    return host.view(np.float64 if host.dtype == np.complex128 else np.float32) if host.dtype.kind == "c" else host


def carried_out() -> dict[str, int]:
    """Return how often ops were carried out in which way so far: past CuPy, or for which reason by it."""
    import kernelproxy

    found: dict[str, int] = {}
    for name, why, count in kernelproxy.current_session().ways():
        way = f"{name}: {why}" if name else why
        found[way] = found.get(way, 0) + count
    return found


def counters() -> dict[str, int]:
    """Return what the session has cost so far."""
    import kernelproxy

    counted = kernelproxy.current_session().counters
    return {"ops": counted.ops, "batches": counted.batches, "round_trips": counted.round_trips}


if __name__ == "__main__":
    sys.exit(main())
