"""One notebook of `sharing.py`: a process with remote CuPy that works as it is told.

Run as ``sharing_worker.py cuda|cpu``; reads one JSON object a line from its input and answers each by one. Times are
``time.monotonic()``, which all processes of a host share.
"""

from __future__ import annotations

import json
import sys
from time import monotonic, sleep
from typing import Any

_SOURCE = r"""
extern "C" __global__ void work(float* out, long long steps) {
    float x = threadIdx.x * 1e-3f + 1.0f;
    for (long long i = 0; i < steps; ++i) {
        x = fmaf(x, 0.999f, 0.001f);
    }
    if (x < 0.0f) {
        out[0] = x;
    }
}
"""
#: Work between two waits for its end, seconds.
_CHUNK_SECONDS = 0.05
#: For how long a device works until its clock is as high as it stays, seconds.
_WARM_SECONDS = 0.5


class Worker:
    """A notebook with one kernel whose length is a number of steps: work, which no other process can do for it."""

    def __init__(self, device: str) -> None:
        import kernelproxy

        kernelproxy.activate()
        import cupy as cp

        self.cp: Any = cp
        self.kernel = cp.RawKernel(_SOURCE, "work")
        self.out = cp.zeros(1, dtype=cp.float32)
        self.small = cp.ones(1_000)
        self.shape = ((132,), (256,)) if device == "cuda" else ((1,), (1,))

    def launch(self, steps: int) -> None:
        """Launch one kernel."""
        self.kernel(*self.shape, (self.out, self.cp.int64(steps)))

    def wait(self) -> None:
        """Wait until all is done."""
        self.cp.cuda.get_current_stream().synchronize()

    def session(self) -> dict[str, Any]:
        """Return which session this is."""
        import kernelproxy

        return {"session": kernelproxy.current_session().ticket.session}

    def calibrate(self, steps: int) -> dict[str, Any]:
        """Return the seconds that one step takes, on a device that has been busy: an idle one lowers its clock."""
        busy_until = monotonic() + _WARM_SECONDS
        while monotonic() < busy_until:
            for _ in range(10):
                self.launch(steps)
            self.wait()
        taken: dict[int, float] = {}
        for count in (1, 3) * 5:
            started = monotonic()
            for _ in range(count):
                self.launch(steps)
            self.wait()
            taken[count] = min(taken.get(count, float("inf")), monotonic() - started)
        # The difference, so that the round trip is in neither.
        return {"step_seconds": max(taken[3] - taken[1], taken[3] / 3) / 2 / steps}

    def hog(self, steps: int, kernel_seconds: float, start: float, until: float, rest: float = 0.0) -> dict[str, Any]:
        """Launch kernels from ``start`` to ``until``, with a pause of ``rest`` seconds behind each if that is not 0."""
        chunk = 1 if rest else max(1, round(_CHUNK_SECONDS / kernel_seconds))
        sleep(max(0.0, start - monotonic()))
        self.launch(steps)
        self.wait()
        first = monotonic()
        done, marks = 1, []
        while (now := monotonic()) < until:
            for _ in range(chunk):
                self.launch(steps)
            self.wait()
            done += chunk
            marks.append((now, done))
            if rest:
                sleep(rest)
        return {"kernels": done, "seconds": monotonic() - start, "first_seconds": first - start, "marks": marks[::10]}

    def ticks(self, period: float, start: float, until: float) -> dict[str, Any]:
        """Compute a number every ``period`` seconds and return how long each took."""
        sleep(max(0.0, start - monotonic()))
        taken, due = [], start
        while due < until:
            sleep(max(0.0, due - monotonic()))
            started = monotonic()
            float((self.small + 1.0)[0])
            taken.append(monotonic() - started)
            due = max(due + period, monotonic())
        return {"taken": taken}


def serve(worker: Worker) -> None:
    """Do what is asked until the input ends."""
    worker.launch(1)
    worker.wait()
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        answer = getattr(worker, order.pop("do"))(**order)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    serve(Worker(sys.argv[1]))
