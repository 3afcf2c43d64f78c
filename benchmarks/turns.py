"""How long a GPU stands still where turns change: between two processes of native CuPy, and between users of a pool.

``python benchmarks/turns.py``, on a machine with a GPU. All kernels note by the GPU's own clock when they began and
ended, so what is seen is the GPU's idle time, whatever hosts and drivers did meanwhile. Natively two processes hand the
GPU to each other by a word in shared memory on which both spin, once what one launched is done, or while it still runs:
less than the second of these nobody can have. In the pool three users launch kernels without an end, and somebody
computes something small every 20 ms, alone and beside them; what that takes natively, alone, is the least that can be
had. One table; nothing is written. It takes a minute.
"""

from __future__ import annotations

import argparse
import mmap
import os
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from subprocess import Popen
from time import monotonic
from typing import Any

import numpy as np
import numpy.typing as npt
import sharing_pool
from sharing_pool import SharedPool
from turns_worker import NATIVE_SECONDS, Worker

from gpu_backend.node.inventory import devices

_WORKER = Path(__file__).with_name("turns_worker.py")
USERS = ("one", "two", "three")
PERSON = "person"
_KERNELS = (20e-6, 200e-6)
_SECONDS, _GRACE_SECONDS = 3.0, 10.0
_PERIOD_SECONDS = 0.02

#: Of each kernel when it began and ended, ns, and whose it was.
Runs = npt.NDArray[np.int64]


def read(files: list[Path]) -> Runs:
    """Return all kernels of all processes, by when they began."""
    runs = [np.load(file).reshape(-1, 2).astype(np.int64) for file in files]
    found = np.concatenate([np.column_stack((run, np.full(len(run), who))) for who, run in enumerate(runs)])
    return found[found[:, 0].argsort()]


def told(runs: Runs) -> str:
    """Return in words how long nothing ran between two turns, and for which part of the time in all."""
    ends = np.maximum.accumulate(runs[:, 1])
    idle = np.maximum(0, runs[1:, 0] - ends[:-1]) / 1e3
    changes = idle[runs[1:, 2] != runs[:-1, 2]]
    part = 1e5 * changes.sum() / (ends[-1] - runs[0, 0])
    middle, ninth = np.percentile(changes, (50, 90))
    return f"{len(changes)} changes: idle for {middle:.0f} µs (median), {ninth:.0f} (p90), {part:.1f} % of the time"


def between_processes(is_early: bool, root: Path) -> str:
    """Have two native processes hand the GPU to each other."""
    word, files = root / "turn", [root / f"native{who}.npy" for who in (0, 1)]
    word.write_bytes(bytes(mmap.PAGESIZE))
    command = [sys.executable, str(_WORKER), "native", str(word), str(int(is_early))]
    both = [Popen([*command, str(who), str(file)]) for who, file in enumerate(files)]
    for one in both:
        if one.wait(NATIVE_SECONDS):
            raise RuntimeError("a native process failed")
    return told(read(files))


def in_milliseconds(taken: list[float]) -> str:
    """Return how long short ops took, without the first ones."""
    ordered = sorted(taken[3:])
    return f"{1e3 * statistics.median(ordered):.2f} ms (median), {1e3 * ordered[int(0.99 * len(ordered))]:.2f} (p99)"


def in_the_pool(say: Callable[[str, str], None], root: Path) -> None:
    """Measure turns and short ops in a pool."""
    sharing_pool.WORKER = _WORKER
    with SharedPool("cuda", "fair_share", [*USERS, PERSON]) as pool:
        person = (pool.of(PERSON), {"do": "ticks", "period": _PERIOD_SECONDS})
        answers, _ = pool.run([person], _SECONDS / 2, _GRACE_SECONDS)
        say("an op every 20 ms, alone", in_milliseconds(answers[0]["taken"]))
        first = pool.of(USERS[0])
        first.tell("calibrate", steps=200_000)
        step = first.answer(monotonic() + _GRACE_SECONDS)["step_seconds"]
        for kernel in _KERNELS:
            hogs: list[tuple[Any, dict[str, Any]]] = []
            for user in USERS:
                order = {"do": "noted", "steps": round(kernel / step), "kernel_seconds": kernel}
                hogs.append((pool.of(user), {**order, "save": str(root / f"{user}.npy")}))
            pool.run(hogs, _SECONDS, _GRACE_SECONDS)
            name = f"{kernel * 1e6:.0f} µs kernels"
            say(f"three users, {name}", told(read([root / f"{user}.npy" for user in USERS])))
            answers, _ = pool.run([*hogs, person], _SECONDS, _GRACE_SECONDS)
            say(f"an op every 20 ms beside them, {name}", in_milliseconds(answers[-1]["taken"]))


def alone_natively() -> str:
    """Return what an op takes natively that comes every 20 ms, with the GPU to itself."""
    worker, now = Worker(is_remote=False), monotonic()
    return in_milliseconds(worker.ticks(_PERIOD_SECONDS, now, now + _SECONDS / 2)["taken"])


def main() -> None:
    """Measure all of it."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    if devices("auto", 1)[0].kind != "cuda":
        sys.exit("No GPU is to be seen here, and its clock is what this reads.")

    def say(what: str, found: str) -> None:
        print(f"{what:>52}  {found}", flush=True)

    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        say("natively, an op every 20 ms, alone", alone_natively())
        say("natively, once all is done", between_processes(False, root))
        say("natively, while the last still runs", between_processes(True, root))
        in_the_pool(say, root)


if __name__ == "__main__":
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "0")  # one GPU, whose clock all kernels have in common
    main()
