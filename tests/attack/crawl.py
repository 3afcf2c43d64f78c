"""One crawl in a process of its own, for what gets out may end it.

Arguments: KIND DIRECTORY OBJECTS ALL_WORDS PART PARTS. It notes what it is about to try in ``trying``, and in the end
what it found in ``found.json``. What stands in ``left_out.json`` is left out; calls from which nothing follows are
listed in ``barren``, and not tried again.
"""

from __future__ import annotations

import json
import mmap
import os
import sys
import traceback
import warnings
from pathlib import Path

from gpu_backend.devices import open_device
from tests.attack.canaries import Canaries
from tests.attack.crawler import Bound, Capturing, Crawler, Faulted

_NOTE_BYTES = 4096
#: The exit status of a crawl whose last attempt ended the device's context.
FAULTED = 70
#: The same of one whose last attempt left a stream capturing: nothing can be waited for any more.
CAPTURING = 71
_MEMORY_BYTES = 2 << 30


class Note:
    """A file that holds the last text that it was told, also when the process dies."""

    def __init__(self, path: Path) -> None:
        path.write_bytes(bytes(_NOTE_BYTES))
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), _NOTE_BYTES)

    def __call__(self, text: str) -> None:
        data = text.encode()[: _NOTE_BYTES - 1]
        self._memory[: len(data) + 1] = data + b"\0"


def open_files() -> set[str]:
    """Return what this process has open, but for what has no name."""
    found = set()
    for descriptor in os.listdir("/proc/self/fd"):
        try:
            link = os.readlink(f"/proc/self/fd/{descriptor}")
        except OSError:
            continue
        if link.startswith("/") and not link.startswith(("/dev/", "/memfd", "/proc")):
            found.add(link)
    return found


def children() -> set[str]:
    """Return the processes that this one has started and that are there, and what they run."""
    found = {pid for task in Path("/proc/self/task").iterdir() for pid in (task / "children").read_text().split()}
    return {f"{pid} {Path('/proc', pid, 'cmdline').read_bytes().replace(bytes(1), b' ').decode()}" for pid in found}


def _nothing_to_read(*_: object, **__: object) -> list[str]:
    """Stand for the words that people read of a failure: to write them takes longer than all else of a refusal."""
    return []


def main(kind: str, directory: Path, bound: Bound) -> None:
    """Crawl, and note what was found."""
    warnings.simplefilter("ignore")
    os.environ["CUPY_CACHE_DIR"] = os.environ["GPU_WORKBENCH_KERNEL_CACHE"] = str(directory / "kernels")
    traceback.format_exception = _nothing_to_read  # type: ignore[assignment]
    device = open_device(kind)
    device.set_memory_limit(_MEMORY_BYTES)
    note = Note(directory / "trying")
    canaries = Canaries(directory)
    os.chdir(canaries.directory)
    files, processes = open_files(), children()
    barren = directory / "barren"
    known = frozenset(barren.read_text().splitlines()) if barren.exists() else frozenset()
    with barren.open("a", buffering=1) as file:
        crawler = Crawler(device, canaries, bound._replace(barren=known), note, lambda text: print(text, file=file))
        crawler.crawl()
    holes = [f"{what}: {chain}" for (what, _), chain in crawler.holes.items()]
    for what, found in (
        ("files left open", open_files() - files),
        ("processes left", children() - processes),
        ("files made", {path.name for path in canaries.directory.iterdir()} - {"secret"}),
    ):
        if found:
            holes.append(f"{what}: {', '.join(sorted(found))}")
    told = {
        "counts": crawler.counts(),
        "holes": holes,
        "overdue": crawler.overdue,
        "foreign": sorted(crawler.foreign),
    }
    (directory / "found.json").write_text(json.dumps(told))


if __name__ == "__main__":
    place = Path(sys.argv[2])
    left_out = place / "left_out.json"
    chains = frozenset(json.loads(left_out.read_text())) if left_out.exists() else frozenset()
    try:
        main(
            sys.argv[1], place, Bound(int(sys.argv[3]), sys.argv[4] == "1", chains, int(sys.argv[5]), int(sys.argv[6]))
        )
    except Faulted as fault:
        sys.stderr.write(f"{fault}\n")
        os._exit(FAULTED)
    except Capturing:
        os._exit(CAPTURING)
    sys.stdout.flush()
    os._exit(0)  # what the crawl did to the interpreter does not matter any more
