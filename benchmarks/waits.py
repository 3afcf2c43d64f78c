"""What waiting for a number costs after pauses, and what an idle session costs; of several checkouts in turns.

``python benchmarks/waits.py [CHECKOUT ...]`` starts a pool of its own for each checkout, by default this, and prints
the median of ``float(x[0])`` at once and after pauses, and the processor time of an idle notebook and its executor;
where there is a GPU, the same read by native CuPy in the same turns. Nothing is written: on a shared machine only what
was measured in turns can be compared.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from time import perf_counter, process_time, sleep
from typing import Any

ROOT = Path(__file__).parents[1]
_PAUSES_MS = (0, 1, 5, 50)
_TURNS = 3
_READS, _SECONDS_A_PAUSE = 2_000, 2.0
_IDLE_SECONDS = 5.0
_TICK = os.sysconf("SC_CLK_TCK")


def median_us(cupy: Any, pause_ms: float) -> float:
    """Return the median time of a read after pauses of ``pause_ms``, µs."""
    x, times = cupy.arange(10.0), []
    float(x[0])
    for _ in range(min(_READS, int(_SECONDS_A_PAUSE / (pause_ms / 1e3)) if pause_ms else _READS)):
        if pause_ms:
            sleep(pause_ms / 1e3)
        begun = perf_counter()
        float(x[0])
        times.append(perf_counter() - begun)
    return statistics.median(times) * 1e6


def measure_reads() -> None:
    """Measure with the CuPy that this process has, and print it."""
    import cupy as cp

    found: dict[str, float] = {f"{pause} ms": median_us(cp, pause) for pause in _PAUSES_MS}
    print(json.dumps(found), flush=True)


def measure_notebook() -> None:
    """Measure as a notebook does that `measure` has started, and print it."""
    measure_reads()
    sys.stdin.readline()
    before = process_time()
    sys.stdin.readline()
    print(json.dumps(process_time() - before), flush=True)


def measure() -> None:
    """Measure with a pool of the checkout that this process runs, and print it."""
    from remoting_pool import OwnPool

    from gpu_backend.engine.detached import read_identity
    from gpu_backend.node import launcher

    command = [sys.executable, "-m", "workbench", "run", __file__, "--as", "notebook"]
    with OwnPool("auto") as pool:
        asked = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        with subprocess.Popen(command, env=pool.environment, **asked) as notebook:  # type: ignore[call-overload]
            found = json.loads(notebook.stdout.readline())
            sleep(1.0)
            executors = [
                read_identity(Path(one) / "process.json").pid for one in launcher.directories(str(pool._state.runtime))
            ]
            before = [processor_seconds(pid) for pid in executors]
            notebook.stdin.write("begin\n")
            notebook.stdin.flush()
            sleep(_IDLE_SECONDS)
            spent = [processor_seconds(pid) - seconds for pid, seconds in zip(executors, before, strict=True)]
            notebook.stdin.write("end\n")
            notebook.stdin.flush()
            found["idle notebook"] = 100 * json.loads(notebook.stdout.readline()) / _IDLE_SECONDS
            found["idle executors"] = 100 * sum(spent) / _IDLE_SECONDS
    print(json.dumps(found))


def processor_seconds(pid: int) -> float:
    """Return the processor time that a process has taken, seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


def has_gpu() -> bool:
    """Tell whether native CuPy can compute here."""
    try:
        import cupy
    except ImportError:
        return False
    return bool(cupy.cuda.is_available())


def in_turns(checkouts: list[Path]) -> None:
    """Measure each of the ``checkouts`` several times, in turns, and print the medians."""
    sides: dict[str | Path, str] = dict.fromkeys(checkouts, "pool")
    if has_gpu():
        sides = {"native CuPy": "native"} | sides
    runs: dict[str | Path, list[dict[str, float]]] = {one: [] for one in sides}
    for _ in range(_TURNS):
        for checkout, found in runs.items():
            where = {"PYTHONPATH": str(checkout)} if isinstance(checkout, Path) else {}
            done = subprocess.run(
                [sys.executable, __file__, "--as", sides[checkout]],
                env={**os.environ, **where}, stdout=subprocess.PIPE, text=True, check=True,
            )  # fmt: skip
            found.append(json.loads(done.stdout.splitlines()[-1]))
    for checkout, found in runs.items():
        print(checkout)
        for name in found[0]:
            values = [one[name] for one in found]
            unit = "% of a processor" if name.startswith("idle") else "µs"
            each = ", ".join(f"{value:.1f}" for value in values)
            print(f"  {name:16} {statistics.median(values):8.1f} {unit}   ({each})")


def main() -> None:
    """Measure, in the role that was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkouts", nargs="*", type=Path, default=[ROOT], help="checkouts of this project")
    parser.add_argument("--as", dest="role", choices=("pool", "notebook", "native"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.role == "notebook":
        measure_notebook()
    elif options.role == "native":
        measure_reads()
    elif options.role == "pool":
        measure()
    else:
        in_turns([one.resolve() for one in options.checkouts])


if __name__ == "__main__":
    main()
