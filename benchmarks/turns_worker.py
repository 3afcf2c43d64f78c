"""A process of `turns.py`, whose kernels note when they ran by the GPU's own clock.

As ``turns_worker.py cuda`` it is a notebook of `sharing_pool`. As ``turns_worker.py native WORD EARLY WHO FILE`` it is
one of two processes that hand the GPU to each other: it spins until the word in the file ``WORD`` says that it is its
turn, launches kernels for a while, waits for their end unless ``EARLY`` is 1, and gives the turn on.
"""

from __future__ import annotations

import mmap
import os
import sys
from collections import deque
from pathlib import Path
from time import monotonic
from typing import Any

import sharing_worker

_SOURCE = r"""
__device__ unsigned long long now() {
    unsigned long long time;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(time));
    return time;
}

extern "C" __global__ void work(float* out, long long steps, unsigned long long* ran, long long number) {
    const bool notes = threadIdx.x == 0 && blockIdx.x == 0;
    if (notes) {
        ran[2 * number] = now();
    }
    float x = threadIdx.x * 1e-3f + 1.0f;
    for (long long i = 0; i < steps; ++i) {
        x = fmaf(x, 0.999f, 0.001f);
    }
    if (x < 0.0f) {
        out[0] = x;
    }
    if (notes) {
        ran[2 * number + 1] = now();
    }
}
"""
#: Kernels of a run at most.
_MOST = 1 << 20
#: Turns of each native process, how long one is, its kernels, and how many of them lie between two looks.
_TURNS, _TURN_SECONDS, _NATIVE_STEPS, _BURST = 60, 5e-3, 10_000, 5
#: Bursts in flight: as much work as an executor keeps in flight while others wait.
_MOST_BURSTS = 3
#: How long a native process may take in all.
NATIVE_SECONDS = 60.0


class Worker(sharing_worker.Worker):
    """CuPy, native or remote, with a kernel that notes when it ran."""

    def __init__(self, is_remote: bool) -> None:
        if is_remote:
            import kernelproxy

            kernelproxy.activate()
        import cupy as cp

        self.cp: Any = cp
        self.kernel = cp.RawKernel(_SOURCE, "work")
        self.out, self.ran = cp.zeros(1, dtype=cp.float32), cp.zeros(2 * _MOST, dtype=cp.uint64)
        self.small, self.shape, self.count = cp.ones(1_000), ((132,), (256,)), 0

    def launch(self, steps: int) -> None:
        """Launch one kernel."""
        number = self.cp.int64(self.count % _MOST)
        self.kernel(*self.shape, (self.out, self.cp.int64(steps), self.ran, number))
        self.count += 1

    def noted(self, save: str, **order: Any) -> dict[str, Any]:
        """Do what a hog does, and write down when its kernels ran."""
        self.count = 0
        answer = self.hog(**order)
        self.save(save)
        return answer

    def save(self, path: str) -> None:
        """Write down when each kernel began and ended."""
        with open(path, "wb") as file:
            self.cp.save(file, self.ran[: 2 * min(self.count, _MOST)])


class Turn:
    """A word in memory that two processes have in common: whose turn it is, and before that who is there."""

    def __init__(self, path: Path, who: int) -> None:
        with path.open("r+b") as file:
            self._words = memoryview(mmap.mmap(file.fileno(), mmap.PAGESIZE)).cast("q")
        self._who, self._next = who, who
        self._words[1 + who] = 1
        while not (self._words[1] and self._words[2]):
            pass

    def take(self) -> None:
        """Wait for this process's next turn."""
        while self._words[0] != self._next:
            pass

    def give(self) -> None:
        """Let the other have its turn."""
        self._words[0] = self._next + 1
        self._next += 2


def hand_over(word: Path, is_early: bool, who: int, save: str) -> None:
    """Take turns with the other process."""
    worker = Worker(is_remote=False)
    for _ in range(50):
        worker.launch(_NATIVE_STEPS)
    worker.wait()
    worker.count, turn, event = 0, Turn(word, who), worker.cp.cuda.Event
    for _ in range(_TURNS):
        turn.take()
        until, flying = monotonic() + _TURN_SECONDS, deque[Any]()
        while monotonic() < until:
            for _ in range(_BURST):
                worker.launch(_NATIVE_STEPS)
            flying.append(event(disable_timing=True))
            flying[-1].record()
            while len(flying) >= _MOST_BURSTS:
                if flying[0].done:
                    flying.popleft()
        if not is_early:
            worker.wait()
        turn.give()
    worker.wait()
    worker.save(save)


def main() -> None:
    """Serve until the input ends, or take turns."""
    if sys.argv[1] == "native":
        hand_over(Path(sys.argv[2]), sys.argv[3] == "1", int(sys.argv[4]), sys.argv[5])
        return
    sharing_worker.serve(Worker(is_remote=True))


if __name__ == "__main__":
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "0")
    main()
