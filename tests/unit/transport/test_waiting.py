"""Waiting awake: a change is seen, however it is looked for, and nobody waits longer than was said."""

from __future__ import annotations

import mmap
import subprocess
import sys
from collections.abc import Iterator
from time import monotonic

import pytest

from gpu_backend.transport import waiting

#: Compiled, if anything is here, and as Python has it.
WAYS = {"chosen": waiting.changes, "python": waiting._looked_for}
FAR = 1e12


@pytest.fixture(params=WAYS)
def changes(request: pytest.FixtureRequest) -> waiting.Changes:
    way: waiting.Changes = WAYS[request.param]
    return way


@pytest.fixture
def words() -> Iterator[memoryview]:
    with mmap.mmap(-1, mmap.PAGESIZE) as memory, memoryview(memory) as view, view.cast("Q") as words:
        yield words


@pytest.mark.parametrize("seen", [1, (1 << 64) - 1])
def test_what_has_changed_is_seen_however_late_it_is(changes: waiting.Changes, words: memoryview, seen: int) -> None:
    assert changes(words, 3, seen, 0.0)
    words[3] = seen
    assert not changes(words, 3, seen, 0.0)
    words[4] = 9
    assert not changes(words, 3, seen, 0.0)


def test_nobody_waits_longer_than_was_said(changes: waiting.Changes, words: memoryview) -> None:
    until = monotonic() + 0.01
    assert not changes(words, 0, 0, until)
    assert monotonic() >= until


def test_a_change_by_another_process_ends_the_wait(
    changes: waiting.Changes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("words") / "words"
    path.write_bytes(bytes(4096))
    writing = "import mmap, sys; file = open(sys.argv[1], 'r+b'); mmap.mmap(file.fileno(), 0)[16] = 5"
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as memory, memoryview(memory) as view:
        with view.cast("Q") as words, subprocess.Popen([sys.executable, "-c", writing, str(path)]) as writer:
            deadline = monotonic() + 100
            while not changes(words, 2, 0, monotonic() + 1e-3):
                assert monotonic() < deadline
            assert words[2] == 5
        assert not writer.returncode


IS_COMPILED = pytest.mark.skipif(waiting.changes is waiting._looked_for, reason="nothing compiled is used here")


@IS_COMPILED
@pytest.mark.parametrize("place", [-1, 512, 1 << 40])
def test_there_is_no_word_beyond_the_memory(words: memoryview, place: int) -> None:
    with pytest.raises(IndexError):
        waiting.changes(words, place, 0, 0.0)


@IS_COMPILED
@pytest.mark.parametrize("given", [(0, 0), (0, "seen", 0.0), ("place", 0, 0.0), (0, 0, None)])
def test_nothing_is_done_with_what_makes_no_sense(words: memoryview, given: tuple[object, ...]) -> None:
    with pytest.raises(TypeError):
        waiting.changes(words, *given)  # type: ignore[call-arg, arg-type]


def test_python_looks_where_nothing_compiled_is_wanted() -> None:
    asked = "from gpu_backend.transport import waiting; assert waiting.changes is waiting._looked_for"
    run = subprocess.run(
        [sys.executable, "-c", asked], env={"GPU_WORKBENCH_COMPILED_MODULES": "off"}, capture_output=True, check=False
    )
    assert run.returncode == 0, run.stderr
