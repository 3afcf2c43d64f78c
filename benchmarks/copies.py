"""Copies from and to ordinary host memory, of all sizes and by each way, beside native CuPy on the same GPU in one run.

``python benchmarks/copies.py`` starts a pool of its own and three processes: native CuPy, CuPy through the pool by the
host's own way, and by TLS over loopback, the way of other hosts. They copy in turns, and the best of each counts; an
upload is timed to the ``synchronize`` behind it. It ends within 90 s and prints one table; nothing is written. Without
a GPU the pool's CPU device is compared with NumPy.

Each upload brings other contents than the one before, as the same are not sent twice by TLS. What that saves is told
below the table: one process more, from so far away as ``--round-trip`` says and by a link of ``--gigabits`` a second,
uploads an array and then the same again.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from time import perf_counter
from typing import Any

SIZES = tuple(1 << power for power in (12, 16, 20, 23, 26, 28, 30))
#: Largest copy over TLS, bytes: more of the same tells nothing new.
_MOST_FAR = 1 << 28
_SIDES = ("native", "host", "tls")
#: The side that is far away, and what it uploads, bytes, how often.
_FAR, _AGAIN_BYTES, _AGAIN_TURNS = "far", 1 << 25, 3
#: Contents are other ones if a word differs in each so many bytes.
_PIECE = 1 << 16
_TURNS = 3
#: How long a side copies in one turn, each way, seconds; once at least.
_SECONDS = 0.25
_MOST_COPIES = 400


# --- one side ---------------------------------------------------------------------------------------------------------


class Copier:
    """Copies by CuPy, whichever it is; by NumPy where there is no other beside the CPU device."""

    def __init__(self, which: str, device: str) -> None:
        if which in ("tls", _FAR):
            from gpu_backend.transport import local

            local.is_here = lambda endpoint: False
        if which != "native":
            import kernelproxy

            kernelproxy.activate()
        self._is_numpy = which == "native" and device == "cpu"
        if not self._is_numpy:
            import cupy

            self._cupy: Any = cupy
            self._synchronize()

    def _synchronize(self) -> None:
        self._cupy.cuda.get_current_stream().synchronize()

    def upload(self, host: Any) -> Any:
        """Return the array on the device when it is there."""
        if self._is_numpy:
            return host.copy()
        array = self._cupy.asarray(host)
        self._synchronize()
        return array

    def download(self, array: Any) -> Any:
        """Return the array on the host."""
        return array.copy() if self._is_numpy else self._cupy.asnumpy(array)

    def measure(self, size: int) -> dict[str, float]:
        """Return the least seconds of an upload and of a download of ``size`` bytes, and the page faults of one."""
        import numpy as np

        page = 1 << min(SIZES).bit_length() - 1
        host = np.tile(np.random.default_rng(size).integers(0, 256, page, np.uint8), size // page)
        array = self.upload(host)
        if not np.array_equal(self.download(array), host):
            raise AssertionError(f"a copy of {size} bytes differs")
        up, up_faults = best(lambda: self.upload(host), lambda: change(host))
        down, down_faults = best(lambda: self.download(array))
        return {"up": up, "up_faults": up_faults, "down": down, "down_faults": down_faults}

    def measure_again(self, size: int) -> dict[str, float]:
        """Return the least seconds of an upload of ``size`` bytes that are new, and of the same ones again."""
        import numpy as np

        host = np.random.default_rng(size).integers(0, 256, size, np.uint8)
        found: dict[str, list[float]] = {"first": [], "again": []}
        for _ in range(_AGAIN_TURNS):
            change(host)
            for times in found.values():
                begun = perf_counter()
                array = self.upload(host)
                times.append(perf_counter() - begun)
                if not np.array_equal(self.download(array), host):
                    raise AssertionError(f"an upload of {size} bytes differs")
        return {which: min(times) for which, times in found.items()}


def change(host: Any) -> None:
    """Have no piece of ``host`` hold what it or another has held."""
    import numpy as np

    words = host.view(np.uint64)[:: _PIECE // 8]
    words[:] = np.random.default_rng().integers(0, 1 << 63, words.size)


def best(copy: Callable[[], object], prepare: Callable[[], object] = lambda: None) -> tuple[float, float]:
    """Return the least seconds of ``copy``, each time after ``prepare``, and its page faults on average."""
    times: list[float] = []
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    while not times or (sum(times) < _SECONDS and len(times) < _MOST_COPIES):
        prepare()
        begun = perf_counter()
        made = copy()
        times.append(perf_counter() - begun)
        del made
    return min(times), (resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) / len(times)


def serve(which: str, device: str) -> None:
    """Measure the sizes that come in, a line each, until there are no more."""
    copier = Copier(which, device)
    print("ready", flush=True)
    for line in sys.stdin:
        measure = copier.measure_again if which == _FAR else copier.measure
        print(json.dumps(measure(int(line))), flush=True)


# --- all sides --------------------------------------------------------------------------------------------------------


class Side:
    """A process that copies as it is told."""

    def __init__(self, which: str, device: str, environment: dict[str, str]) -> None:
        command = [sys.executable, __file__, "--as", which, "--device", device]
        self._process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._read()

    def __enter__(self) -> Side:
        return self

    def __exit__(self, *of: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def _read(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"A side ended with status {self._process.wait()}; what it said stands above.")
        return line

    def measure(self, size: int) -> dict[str, float]:
        """Have ``size`` bytes copied; return what `Copier.measure` does."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{size}\n")
        self._process.stdin.flush()
        found: dict[str, float] = json.loads(self._read())
        return found


def measure_all(
    device: str, most: int, round_trip: float, gigabits: float
) -> tuple[str, dict[int, dict[str, dict[str, float]]], dict[str, float]]:
    """Return what the device is, the best of each size and side, and that of an upload again from so far away."""
    from far_links import far_links, port_range
    from remoting_pool import OwnPool

    from kernelproxy.settings import CONFIG_VARIABLE

    found: dict[int, dict[str, dict[str, float]]] = {}
    with ExitStack() as stack:
        ports = port_range()
        pool = stack.enter_context(OwnPool(device, sessions_per_device=4, executor_ports=ports))
        pool.wait_for_warm()
        sides = {which: stack.enter_context(Side(which, pool.device_kind, pool.environment)) for which in _SIDES}
        name = pool.view().devices[0].name
        for size in [one for one in SIZES if one <= most]:
            asked = [which for which in _SIDES if which != "tls" or size <= _MOST_FAR]
            turns = [{which: sides[which].measure(size) for which in asked} for _ in range(_TURNS)]
            found[size] = {
                which: {key: min(turn[which][key] for turn in turns) for key in turns[0][which]} for which in asked
            }
        (config,) = stack.enter_context(far_links(pool.config, ports, [round_trip], gigabits * 1e9 / 8))
        environment = pool.environment | {CONFIG_VARIABLE: str(config)}
        far = stack.enter_context(Side(_FAR, pool.device_kind, environment))
        again = far.measure(min(most, _AGAIN_BYTES))
    return name, found, again


def show_again(size: int, round_trip: float, gigabits: float, again: dict[str, float]) -> None:
    """Print what it saves that the same contents are not sent again."""
    first, second = again["first"], again["again"]
    print(
        f"the same {_size_in_words(size)} again, over TLS, {round_trip * 1e3:g} ms away, {gigabits:g} Gb/s: "
        f"{_in_words(first)} at first, {_in_words(second)} again, {first / second:.1f} times as fast"
    )


def show(name: str, found: dict[int, dict[str, dict[str, float]]]) -> None:
    """Print the table: times, how many times native's speed that is, and the client's page faults."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"on {name}: time of a copy, its speed beside native's, page faults of the process")
    for heading in ("", *_SIDES):
        table.add_column(heading, justify="right")
    for direction in ("up", "down"):
        for size, sides in found.items():
            native = sides["native"][direction]
            cells = []
            for which in _SIDES:
                if which not in sides:
                    cells.append("")
                    continue
                seconds, faults = sides[which][direction], sides[which][f"{direction}_faults"]
                ratio = "" if which == "native" else f"  {native / seconds:.2f} ×"
                cells.append(f"{_in_words(seconds)} {size / seconds / 1e9:6.2f} GB/s{ratio} {faults:6.0f} f")
            table.add_row(f"{direction} {_size_in_words(size)}", *cells)
    Console(width=None if sys.stdout.isatty() else 140).print(table)


def _in_words(seconds: float) -> str:
    return f"{seconds * 1e6:.0f} µs" if seconds < 10e-3 else f"{seconds * 1e3:.1f} ms"


def _size_in_words(size: int) -> str:
    return f"{size >> 20} MiB" if size >> 20 else f"{size >> 10} KiB"


def main() -> None:
    """Run one side, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=("auto", "cuda", "cpu"), default="auto", help="what to copy to")
    parser.add_argument("--most", type=int, default=SIZES[-1] >> 20, help="largest copy, MiB")
    parser.add_argument("--round-trip", type=float, default=10.0, help="how far away the same is uploaded again, ms")
    parser.add_argument("--gigabits", type=float, default=1.0, help="the width of that link, Gb/s")
    parser.add_argument("--as", dest="which", choices=(*_SIDES, _FAR), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.which is not None:
        serve(options.which, options.device)
    else:
        most, round_trip = options.most << 20, options.round_trip / 1e3
        name, found, again = measure_all(options.device, most, round_trip, options.gigabits)
        show(name, found)
        show_again(min(most, _AGAIN_BYTES), round_trip, options.gigabits, again)


if __name__ == "__main__":
    main()
