"""An executor that turns against its gate when a file ``attack`` in its own directory says how. Run by an agent."""

from __future__ import annotations

import os
import random
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))  # of an executor's environment little is left

os.environ["GPU_WORKBENCH_COMPILED_MODULES"] = "off"  # what is compiled cannot be turned by an assignment

from gpu_backend.executor import start


def burn(executor: object) -> None:
    """Compute in native code, and say nothing of it."""
    while True:
        sum(range(100_000))


def burn_on_gpu(executor: object) -> None:
    """Have the GPU compute, and say nothing of it."""
    import cupy

    operand = cupy.ones((4096, 4096), dtype="float32")
    while True:
        for _ in range(20):
            operand @ operand
        cupy.cuda.runtime.deviceSynchronize()


def garbage(executor: object) -> None:
    """Compute, and write nonsense into the report page all the time."""
    words = executor._gate._report_words  # type: ignore[attr-defined]
    while True:
        for place in range(1, len(words)):
            words[place] = random.choice((0, -1, 1, 2**62, random.randrange(-(2**63), 2**63)))
        words[1] = 0
        sum(range(100_000))


def boast(executor: object) -> None:
    """Say that an hour was used, and an hour more, and more."""
    words = executor._gate._report_words  # type: ignore[attr-defined]
    while True:
        words[9] += 3_600_000_000_000
        words[8] += 2
        time.sleep(0.05)


def forge(executor: object) -> None:
    """Say without end that an op runs."""
    words = executor._gate._report_words  # type: ignore[attr-defined]
    while True:
        words[1] = 1
        sum(range(10_000))


def fork(executor: object) -> None:
    """Have a process of one's own compute."""
    if not os.fork():
        while True:
            sum(range(100_000))
    while True:
        time.sleep(1)


def spoil(executor: object) -> None:
    """Have the right of way for ever; cut and write what can be."""
    way = executor._gate._way.words  # type: ignore[attr-defined]
    for number in map(int, os.listdir("/proc/self/fd")):
        for size in (0, 1 << 20):
            try:
                if "memfd" in os.readlink(f"/proc/self/fd/{number}"):
                    os.ftruncate(number, size)
            except OSError:
                continue
    while True:
        way[0] = time.monotonic_ns() + 4_000_000
        time.sleep(0.0005)


ATTACKS = {each.__name__: each for each in (burn, burn_on_gpu, garbage, boast, forge, fork, spoil)}


def wait_for_orders(executor: object) -> None:
    """Attack as soon as it is said how."""
    order = Path(executor._config.own) / "attack"  # type: ignore[attr-defined]
    while not order.exists():
        time.sleep(0.02)
    how = order.read_text()
    order.unlink()  # whoever gave the order sees that it is carried out
    ATTACKS[how](executor)


def main() -> None:
    """Run the executor."""
    from_start = start.begin

    def begin(directory: Path) -> object:
        config = from_start(directory)
        from gpu_backend.executor.process import Executor

        serve = Executor.run

        def run(self: Executor) -> int:
            threading.Thread(target=wait_for_orders, args=(self,), daemon=True).start()
            return serve(self)

        Executor.run = run  # type: ignore[method-assign]
        return config

    start.begin = begin  # type: ignore[assignment]
    start.main()


if __name__ == "__main__":
    main()
