"""One side of what `systems_remote.py` compares: a program beside the GPU, or one that reaches it through the pool.

Run as ``systems_side.py native|remote cuda|cpu ORDER``, ORDER being a JSON object with ``is_quick`` and, for the remote
side, ``links``: a client's settings file by the name of its link. Prints one JSON object: seconds, by what was done.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import statistics
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

#: Edges of the matrices, and how often they are multiplied.
SIZES, PRODUCTS = (512, 2_048, 4_096), 200
QUICK_SIZES, QUICK_PRODUCTS = (16, 32, 64), 5
CHAIN, AWAITED, READS = 1_000, 50, 20
BANDWIDTH_BYTES = 64 << 20


class Side:
    """CuPy, whichever it is; NumPy where there is no GPU to be native on."""

    def __init__(self, which: str, device: str, is_quick: bool) -> None:
        self.is_numpy = which == "native" and device == "cpu"
        self.cp: Any = importlib.import_module("numpy" if self.is_numpy else "cupy")
        self.sizes = QUICK_SIZES if is_quick else SIZES
        self.products = QUICK_PRODUCTS if is_quick else PRODUCTS
        self.shrink = 16 if is_quick else 1

    def wait(self) -> None:
        """Wait until all is done."""
        if not self.is_numpy:
            self.cp.cuda.get_current_stream().synchronize()

    def figures(self) -> dict[str, Any]:
        """Return all that is measured, over whichever link this thread's client has."""
        self.matrices(self.sizes[0])  # loads the libraries
        return {
            "matrices": {str(edge): self.matrices(edge) for edge in self.sizes},
            "value": self.value(),
            "chain": self.chain(CHAIN // self.shrink),
            "awaited": self.awaited(AWAITED // self.shrink + 1),
            "upload_gbs": self.upload(BANDWIDTH_BYTES // self.shrink**2),
        }

    def matrices(self, edge: int) -> dict[str, float]:
        """Return how long an upload of two matrices, their products and a download take, seconds."""
        import numpy as np

        host = np.full((edge, edge), 1 / edge, dtype=np.float32)
        self.wait()
        start = perf_counter()
        a, b = self.cp.array(host), self.cp.array(host)
        self.wait()
        uploaded = perf_counter()
        for _ in range(self.products):
            a = a @ b
        self.wait()
        computed = perf_counter()
        back = a.copy() if self.is_numpy else self.cp.asnumpy(a)
        end = perf_counter()
        if not np.allclose(back, host, rtol=1e-2):
            raise AssertionError(f"the products of {edge} are wrong")
        return {"upload": uploaded - start, "compute": computed - uploaded, "download": end - computed}

    def value(self) -> float:
        """Return the median time to fetch one value, seconds."""
        x, times = self.cp.arange(1_000.0), []
        for _ in range(READS):
            self.wait()
            start = perf_counter()
            float(x[0] + 0.0)
            times.append(perf_counter() - start)
        return statistics.median(times)

    def chain(self, ops: int) -> float:
        """Return how long small operations that depend on each other take, to the value in which they end, seconds."""
        x = self.cp.ones(1_000)
        self.wait()
        start = perf_counter()
        for _ in range(ops):
            x = x + 1.0
        last = float(x[0])
        taken = perf_counter() - start
        if last != ops + 1:
            raise AssertionError(f"the chain of {ops} gave {last}")
        return taken / ops

    def awaited(self, ops: int) -> float:
        """Return how long each of such operations takes if it is waited for, seconds."""
        x = self.cp.ones(1_000)
        self.wait()
        start = perf_counter()
        for _ in range(ops):
            x = x + 1.0
            self.wait()
        return (perf_counter() - start) / ops

    def upload(self, size: int) -> float:
        """Return the bandwidth of the best of three uploads, GB/s."""
        import numpy as np

        host, times = np.ones(size, dtype=np.uint8), []
        for _ in range(3):
            self.wait()
            start = perf_counter()
            self.cp.array(host)
            self.wait()
            times.append(perf_counter() - start)
        return size / min(times) / 1e9


def over_links(device: str, order: dict[str, Any]) -> dict[str, Any]:
    """Return what is measured over each link. "local" goes by the host's own way; the others as from another host."""
    import kernelproxy
    from gpu_backend.transport import local
    from kernelproxy import settings

    kernelproxy.activate()
    side, found, is_here = Side("remote", device, order["is_quick"]), {}, local.is_here
    for name, config in order["links"].items():
        local.is_here = is_here if name == "local" else lambda endpoint: False
        client = kernelproxy.Client(settings.load(Path(config)))
        with client, contextlib.closing(client):
            found[name] = side.figures()
    return found


def main() -> None:
    """Measure and print."""
    which, device, order = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
    if which == "native":
        print(json.dumps(Side(which, device, order["is_quick"]).figures()))
    else:
        print(json.dumps(over_links(device, order)))


if __name__ == "__main__":
    main()
