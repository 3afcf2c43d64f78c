"""Many processes that hunt at a time on one device: what ends one of them ends no other."""

from __future__ import annotations

from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from pathlib import Path
from time import perf_counter

import msgspec

from gpu_backend.devices import open_device
from tests.fuzz.hunting import Counts, hunt
from tests.fuzz.structure import Structure

__all__ = ["hunt_together"]

#: A worker that says nothing for so long after its time has hung, seconds.
_GRACE_SECONDS = 60.0


def _work(said: Connection, device: str, seed: int, phrases: int, seconds: float, under_way: Path) -> None:
    def note(structure: Structure) -> None:
        under_way.write_bytes(msgspec.json.encode(structure))

    said.send_bytes(msgspec.json.encode(hunt(seed, open_device(device), seconds=seconds, phrases=phrases, note=note)))


def hunt_together(device: str, seeds: list[int], phrases: int, seconds: float, out: Path) -> tuple[Counts, list[str]]:
    """Return what all workers have counted, with a seed each, and what befell those that did not come back."""
    spawning, ends = get_context("spawn"), perf_counter() + seconds + _GRACE_SECONDS
    workers, counts, lost = {}, Counts(), []
    for seed in seeds:
        mine, other = spawning.Pipe(duplex=False)
        worker = spawning.Process(
            target=_work, args=(other, device, seed, phrases, seconds, out / f"under-way-{seed}.json")
        )
        worker.start()
        other.close()
        workers[mine] = (worker, seed)
    while workers:
        for said in wait([*workers], max(0.0, ends - perf_counter())) or [*workers]:
            worker, seed = workers.pop(said)  # type: ignore[index]
            try:
                told = said.recv_bytes() if perf_counter() < ends else b""  # type: ignore[union-attr]
            except EOFError:
                told = b""
            if told:
                counts.add(msgspec.json.decode(told, type=Counts))
            else:
                worker.kill()
                path = out / f"under-way-{seed}.json"
                lost.append(f"worker {seed} was lost (exit code {worker.exitcode}) at {path.name}:")
                if path.exists():
                    lost += msgspec.json.decode(path.read_bytes(), type=Structure).lines()
            worker.join()
    return counts, lost
