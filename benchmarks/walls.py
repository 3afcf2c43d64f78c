"""What the walls around an executor cost its start: with and without them, in turns.

``python benchmarks/walls.py [--device cuda] [--turns N]`` starts processes as executors begin: each shuts itself in, or
does not, and opens its device. Prints the medians, in ms, and what the walls add. Nothing is written.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

import msgspec

from gpu_backend.executor import sandbox
from gpu_backend.node import inventory
from gpu_backend.node.environment import executor_environment
from gpu_backend.node.walls import gpu_devices

_WAYS = ("without", "with")


def begin(way: str, own: str, device: inventory.Found) -> dict[str, float]:
    """Begin as an executor of ``device`` does; return what its walls and its device took, ms."""
    started = perf_counter()
    if way == "with":
        sandbox.enter(own, sandbox.Walls(devices=gpu_devices(device)))
    walled = perf_counter()
    from gpu_backend.devices import open_device

    open_device(device.kind, device.ordinal)
    if way == "with":
        sandbox.seal()
    return {"walls": (walled - started) * 1e3, "device": (perf_counter() - walled) * 1e3}


def measured(way: str, device: inventory.Found) -> dict[str, float]:
    """Start a process that begins so; return its times and that from its start to its end, ms."""
    with tempfile.TemporaryDirectory(prefix="walls") as own:
        environment = executor_environment(Path(own), [device], {"PYTHONPATH": ":".join(filter(None, sys.path))})
        command = [sys.executable, __file__, "--as", way, own, msgspec.json.encode(device).decode()]
        started = perf_counter()
        done = subprocess.run(command, env=environment, cwd=own, capture_output=True, text=True, check=True)
        took: dict[str, float] = json.loads(done.stdout)
        return took | {"process": (perf_counter() - started) * 1e3}


def main() -> None:
    """Measure in turns and print; or begin, where this process was started for that."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto", help="what to open")
    parser.add_argument("--turns", type=int, default=10, help="processes of either way")
    parser.add_argument("--as", nargs=3, dest="begins", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.begins:
        way, own, described = options.begins
        print(json.dumps(begin(way, own, msgspec.json.decode(described, type=inventory.Found))))
        return
    device = inventory.devices(options.device, 1)[0]
    turns = [[measured(way, device) for way in _WAYS] for _ in range(options.turns)]
    print(f"{device.name}, {sandbox.level() or 'no sandbox'}; medians of {options.turns}, ms")
    for key in ("walls", "device", "process"):
        without, with_ = (statistics.median([turn[place][key] for turn in turns]) for place in range(2))
        print(f"{key:8s} without {without:8.1f}   with {with_:8.1f}   more {with_ - without:+6.1f}")


if __name__ == "__main__":
    main()
