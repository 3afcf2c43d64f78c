"""One side of `remoting.py`: the same measurements by native CuPy (or NumPy), or through the pool.

Run by `remoting.py` in a process of its own as ``remoting_side.py native|remote cuda|cpu``; prints one JSON object.
"""

from __future__ import annotations

import importlib
import json
import statistics
import sys
from collections.abc import Callable
from time import perf_counter
from typing import Any

ADDS = 100_000  #: ops of the dependent chain
STEPS = 10_000  #: of each loop of small ops
RECORDED = 8_000  #: ops timed on the client alone; fewer than may be under way, so that nobody waits
READS = 1_000  #: synchronising ops
COPY_BYTES = 256 << 20
ELEMENTS = 1_000  #: of the small arrays
_RAW = r"""
extern "C" __global__ void decay(double* x, double by, long long n) {
  long long i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= by;
}
"""


class Side:
    """CuPy, whichever it is, with what NumPy lacks of it."""

    def __init__(self, which: str, device: str) -> None:
        if which == "remote":
            import kernelproxy

            kernelproxy.activate()
        self.is_remote = which == "remote"
        self.is_numpy = device == "cpu" and not self.is_remote
        self.cp: Any = importlib.import_module("numpy" if self.is_numpy else "cupy")

    def synchronize(self) -> None:
        """Wait until everything is computed."""
        if not self.is_numpy:
            self.cp.cuda.Device().synchronize()

    def to_host(self, array: Any) -> Any:
        """Copy ``array`` to the host."""
        return array.copy() if self.is_numpy else self.cp.asnumpy(array)

    def to_device(self, array: Any) -> Any:
        """Copy ``array`` to the device."""
        return self.cp.array(array)


def best_per_op(side: Side, run: Callable[[], object], ops: int, rounds: int = 7) -> float:
    """Return the shortest time per op on the client, in microseconds; what is queued is waited for in between."""
    times = []
    for _ in range(rounds):
        side.synchronize()
        started = perf_counter()
        run()
        times.append(perf_counter() - started)
    side.synchronize()
    return min(times) / ops * 1e6


def client_costs(side: Side) -> dict[str, float]:
    """Return the client's cost per op, in microseconds."""
    x, y = side.cp.arange(ELEMENTS, dtype="float64"), side.cp.ones(ELEMENTS)

    def add() -> None:
        for _ in range(RECORDED):
            x + y

    def view() -> None:
        for _ in range(RECORDED):
            x[1:-1]

    def in_place() -> None:
        for _ in range(RECORDED // 2):
            x[1:-1] += y[2:]

    return {
        "add_us": best_per_op(side, add, RECORDED),
        "view_us": best_per_op(side, view, RECORDED),
        "in_place_us": best_per_op(side, in_place, RECORDED // 2),
    }


def chain_seconds(side: Side) -> float:
    """Return the time of a chain of dependent small adds, from its first op to the number it ends with."""
    y = side.cp.ones(ELEMENTS)

    def run(adds: int) -> float:
        x = side.cp.zeros(ELEMENTS)
        started = perf_counter()
        for _ in range(adds):
            x = x + y
        last = float(x[0])
        taken = perf_counter() - started
        if last != adds:
            raise AssertionError(f"the chain of {adds} adds gave {last}")
        return taken

    run(1_000)
    return min(run(ADDS) for _ in range(2))


def loops(side: Side) -> dict[str, Callable[[], Any]]:
    """Return loops of small ops by name; each returns an array."""
    cp = side.cp
    x, y = cp.zeros(ELEMENTS), cp.ones(ELEMENTS)

    def in_place() -> Any:
        for _ in range(STEPS):
            x[1:-1] += y[2:]
        return x

    def reductions() -> Any:
        total = y
        for _ in range(STEPS):
            total = y.sum()
        return total

    def sweeps() -> Any:
        u = cp.linspace(0, 1, ELEMENTS)
        for _ in range(STEPS // 4):
            u[1:-1] = 0.5 * (u[:-2] + u[2:])
        return u

    def mixed() -> Any:
        total = y
        for _ in range(STEPS // 4):
            x[1:-1] += y[2:]
            total = x[1:].sum()
        return total

    found = {"in_place": in_place, "reductions": reductions, "sweeps": sweeps, "mixed": mixed}
    return found if side.is_numpy else found | kernels(side)


def kernels(side: Side) -> dict[str, Callable[[], Any]]:
    """Return loops that launch a kernel of the user's, as `loops`."""
    cp = side.cp
    raw = cp.RawKernel(_RAW, "decay")
    blend = cp.ElementwiseKernel("float64 x, float64 y", "float64 z", "z = 0.5 * x + 0.25 * y", "blend")
    scale = cp.ElementwiseKernel("float64 x, float64 by", "float64 z", "z = x * by", "scale")
    x, y = cp.ones(ELEMENTS), cp.ones(ELEMENTS)

    def launches() -> Any:
        for _ in range(STEPS):
            raw((4,), (256,), (x, 0.999, ELEMENTS))
        return x

    def calls() -> Any:
        z = x
        for _ in range(STEPS):
            z = blend(z, y)
        return z

    def other_launches() -> Any:
        for step in range(STEPS):
            raw((4,), (256,), (x, 1.0 - step * 1e-9, ELEMENTS))
        return x

    def other_calls() -> Any:
        z = x
        for step in range(STEPS):
            z = scale(z, 1.0 - step * 1e-9)
        return z

    return {
        "raw": launches, "elementwise": calls, "raw_numbers": other_launches, "elementwise_numbers": other_calls,
    }  # fmt: skip


def loop_seconds(side: Side) -> dict[str, float]:
    """Return the times of the loops, each from its first op to the number it ends with."""
    found = {}
    for name, loop in loops(side).items():
        times = []
        for _ in range(3):
            side.synchronize()
            started = perf_counter()
            last = float(loop().ravel()[-1])
            times.append(perf_counter() - started)
            if last < 0:
                raise AssertionError(f"{name} ended with {last}")
        found[f"{name}_s"] = min(times)
    return found


def read_us(side: Side) -> float:
    """Return the median time of ``float(x[0])``, in microseconds."""
    x = side.cp.arange(ELEMENTS, dtype="float64")
    times = []
    for _ in range(READS):
        side.synchronize()
        started = perf_counter()
        float(x[0])
        times.append(perf_counter() - started)
    return statistics.median(times) * 1e6


def copies(side: Side) -> dict[str, float]:
    """Return the speed of large copies from and to ordinary host memory, in GB/s."""
    import numpy as np

    host = np.random.default_rng(0).integers(0, 255, COPY_BYTES, dtype=np.uint8)
    up, down = [], []
    for _ in range(3):
        side.synchronize()
        started = perf_counter()
        array = side.to_device(host)
        side.synchronize()
        up.append(perf_counter() - started)
        started = perf_counter()
        back = side.to_host(array)
        down.append(perf_counter() - started)
        if not np.array_equal(host[:: 4 << 10], back[:: 4 << 10]):
            raise AssertionError("the copy differs")
        del array
    return {"upload_gbs": COPY_BYTES / min(up) / 1e9, "download_gbs": COPY_BYTES / min(down) / 1e9}


def device_name(side: Side, device: str) -> str:
    """Return what computes, as its vendor calls it."""
    if device == "cpu":
        return "CPU"
    return str(side.cp.cuda.runtime.getDeviceProperties(0)["name"].decode())


def main() -> None:
    """Measure and print."""
    which, device = sys.argv[1:3]
    started = perf_counter()
    side = Side(which, device)
    float(side.cp.ones(3).sum())
    first_seconds = perf_counter() - started
    measured: dict[str, Any] = {
        "library": f"{side.cp.__name__} {side.cp.__version__}",
        "device": device_name(side, device),
        "first_result_s": first_seconds,
        **client_costs(side),
        "chain_s": chain_seconds(side),
        **loop_seconds(side),
        "read_us": read_us(side),
        **copies(side),
    }
    if side.is_remote:
        import kernelproxy

        counters = kernelproxy.current_session().counters
        measured["counters"] = {name: getattr(counters, name) for name in ("ops", "batches", "round_trips")}
    print(json.dumps(measured))


if __name__ == "__main__":
    main()
