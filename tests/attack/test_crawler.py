"""From every object that a client can get, it walks wherever the protocol lets it, and reaches nothing outside."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.attack.crawl import FAULTED

_ROOT = Path(__file__).parents[2]
#: How many objects are walked from; `-m soak` walks from all, and tries every word at each.
_OBJECTS = int(os.environ.get("CRAWL_OBJECTS", "200"))
_ALL = 1 << 30
#: A crawl that dies begins again without what it died of, so often.
_MOST_DEATHS = 5
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
    imported = os.pathsep.join(filter(None, (str(_ROOT), os.environ.get("PYTHONPATH"))))
    words = (kind, str(directory), *map(str, (objects, int(has_all_words), part, parts)))
    command = [sys.executable, "-m", "tests.attack.crawl", *words]
    found: dict[str, Any] = {"counts": {}, "holes": [], "overdue": [], "foreign": []}
    for _ in range(_MOST_DEATHS):
        (directory / "left_out.json").write_text(json.dumps(list(died)))
        done = subprocess.run(
            command, cwd=_ROOT, env={**os.environ, "PYTHONPATH": imported}, capture_output=True, text=True,
            timeout=_SECONDS, check=False,
        )  # fmt: skip
        if done.returncode == 0:
            break
        note = directory / "trying"
        trying = note.read_bytes().partition(b"\0")[0].decode() if note.exists() else "to begin"
        if done.returncode == FAULTED:
            died[trying] = f"a kernel met memory that is not there ({done.stderr.splitlines()[-1]})"
            continue
        assert done.returncode < 0, f"{trying}\n{done.stderr}"
        died[trying] = f"the process died of signal {-done.returncode}"
    if (directory / "found.json").exists():
        found = json.loads((directory / "found.json").read_text())
    found["holes"] += [f"{what}: {chain}" for chain, what in died.items()]
    return found


@pytest.mark.timeout(_SECONDS)
@pytest.mark.parametrize("objects", [_OBJECTS, pytest.param(_ALL, marks=pytest.mark.soak)], ids=["bounded", "all"])
@pytest.mark.parametrize("kind", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu_long)])
def test_a_crawl_reaches_nothing_outside(kind: str, objects: int, tmp_path: Path) -> None:
    found = crawl_together(kind, tmp_path, objects, has_all_words=objects == _ALL)
    for key in ("counts", "overdue", "foreign"):
        print(f"{kind}, {key}: {found[key]}")  # noqa: T201 (the counts are what the test shows)
    assert not found["holes"], "\n" + "\n".join(found["holes"])
    assert found["counts"]["objects walked from"] >= 100
