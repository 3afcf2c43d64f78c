"""From every object that a client can get, it walks wherever the protocol lets it, and reaches nothing outside."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from tests.attack.crawl import CAPTURING, FAULTED

_ROOT = Path(__file__).parents[2]
#: How many objects are walked from; `-m soak` walks from all, and tries every word at each.
_OBJECTS = int(os.environ.get("CRAWL_OBJECTS", "200"))
_ALL = 1 << 30
#: A crawl that dies begins again without what it died of, so often.
_MOST_DEATHS, _MOST_STUCK = 5, 50
#: An op that is not done after so long never will be, seconds; to compile a kernel takes a part of it.
_STUCK_SECONDS = {"cpu": 120.0, "cuda": 15.0}
_SECONDS = 3_000


#: Crawls of a GPU that share the work: each compiles the kernels that it meets, which takes most of the time.
_PARTS = {"cpu": 1, "cuda": max(1, min(8, (os.cpu_count() or 1) // 2))}


def crawl_together(kind: str, directory: Path, objects: int, has_all_words: bool) -> dict[str, Any]:
    """Crawl on a device of ``kind`` and return what was found: counts, holes, and more for people."""
    parts = _PARTS[kind]
    own = [directory / str(part) for part in range(parts)]
    with ThreadPoolExecutor(parts) as pool:
        numbers = range(parts)
        share = -(-objects // parts)
        found = list(pool.map(lambda part: crawl(kind, own[part], share, has_all_words, part, parts), numbers))
    counts = Counter[str]()
    for one in found:
        counts.update(one["counts"])
    lists = {key: sorted({item for one in found for item in one[key]}) for key in ("holes", "overdue", "foreign")}
    return {"counts": dict(counts), **lists}


def crawl(kind: str, directory: Path, objects: int, has_all_words: bool, part: int, parts: int) -> dict[str, Any]:
    """Crawl one part in a process and return what was found; that the process died is a finding, too."""
    directory.mkdir()
    died: dict[str, str] = {}
    stuck: list[str] = []
    words = (kind, str(directory), *map(str, (objects, int(has_all_words), part, parts)))
    found: dict[str, Any] = {"counts": {}, "holes": [], "overdue": [], "foreign": []}
    while len(died) < _MOST_DEATHS and len(stuck) < _MOST_STUCK:
        (directory / "left_out.json").write_text(json.dumps([*died, *stuck]))
        status = _run(words, directory, _STUCK_SECONDS[kind])
        if status == 0:
            found = json.loads((directory / "found.json").read_text())
            break
        trying = _trying(directory).partition(" ")[2] or "to begin"
        told = (directory / "stderr").read_text()
        if status is None or status == CAPTURING:
            stuck.append(trying)
        elif status == FAULTED:
            died[trying] = f"a kernel met memory that is not there ({told.splitlines()[-1]})"
        else:
            assert status < 0, f"{trying}\n{told}"
            died[trying] = f"the process died of signal {-status}"
    else:
        found["holes"].append(f"the crawl never ended: {stuck}")
    found["holes"] += [f"{what}: {chain}" for chain, what in died.items()]
    found["overdue"] += stuck
    return found


def _run(words: tuple[str, ...], directory: Path, most_seconds: float) -> int | None:
    """Return the exit status of a crawl; None if it was killed, because one op was never done.

    A kernel of CuPy's that meets a parameter of no meaning may run for ever, and nothing in its process can stop it.
    """
    imported = os.pathsep.join(filter(None, (str(_ROOT), os.environ.get("PYTHONPATH"))))
    (directory / "trying").unlink(missing_ok=True)
    with (directory / "stderr").open("w") as stderr, subprocess.Popen(
        [sys.executable, "-m", "tests.attack.crawl", *words], cwd=_ROOT, env={**os.environ, "PYTHONPATH": imported},
        stdout=stderr, stderr=stderr,
    ) as process:  # fmt: skip
        try:
            seen, since = "", monotonic()
            while True:
                try:
                    return process.wait(1.0)
                except subprocess.TimeoutExpired:
                    now = _trying(directory)
                if now != seen:
                    seen, since = now, monotonic()
                elif seen and monotonic() - since > most_seconds:
                    return None
        finally:
            process.kill()


def _trying(directory: Path) -> str:
    """Return the number of the attempt that a crawl makes, and its chain; "" before the first."""
    note = directory / "trying"
    return note.read_bytes().partition(b"\0")[0].decode() if note.exists() else ""


@pytest.mark.timeout(_SECONDS)
@pytest.mark.parametrize("objects", [_OBJECTS, pytest.param(_ALL, marks=pytest.mark.soak)], ids=["bounded", "all"])
@pytest.mark.parametrize("kind", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu_long)])
def test_a_crawl_reaches_nothing_outside(kind: str, objects: int, tmp_path: Path) -> None:
    found = crawl_together(kind, tmp_path, objects, has_all_words=objects == _ALL)
    for key in ("counts", "overdue", "foreign"):
        print(f"{kind}, {key}: {found[key]}")  # noqa: T201 (the counts are what the test shows)
    assert not found["holes"], "\n" + "\n".join(found["holes"])
    assert found["counts"]["objects walked from"] >= 100
