"""What is done when an object ends is done whole: nothing of it can be interrupted."""

from __future__ import annotations

from weakref import ref

import numpy as np

from gpu_backend.opstream.layout import contiguous
from gpu_backend.transport.endings import at_end, ending
from kernelproxy.calls import array_core, remote_object
from kernelproxy.client import Client
from kernelproxy.namespace.pinned_memory import PinnedMemoryPool
from tests.python_run import python_run


def test_an_action_is_done_once_when_the_object_ends() -> None:
    done: list[tuple[str, int]] = []
    objects = [np.zeros(3)]
    reference = at_end(objects[0], done.append, ("ended", 3))
    assert reference() is objects[0]
    assert done == []
    assert python_run(objects.clear) == []
    assert done == [("ended", 3)]
    assert reference() is None


def test_one_ending_serves_any_number_of_objects() -> None:
    left = {3: "three", 5: "five"}
    at_end_of_three = ending(left.pop, 3, None)
    for _ in range(3):
        left[3] = "three"
        objects = [np.zeros(3)]
        reference = ref(objects[0], at_end_of_three)
        assert 3 in left
        assert python_run(objects.clear) == []
        assert left == {5: "five"}
        assert reference() is None


def test_blocks_of_pinned_memory_come_back_without_a_line_of_python() -> None:
    pool = PinnedMemoryPool()
    lent = [pool.malloc(1_000) for _ in range(3)]
    assert pool.n_free_blocks() == 0
    assert python_run(lent.clear) == []
    assert pool.n_free_blocks() == 3
    again = pool.malloc(900)
    assert pool.n_free_blocks() == 2
    pool.free_all_blocks()
    del again
    assert pool.n_free_blocks() == 1
    pool._note_upload(900)
    assert pool.n_free_blocks() == 1
    pool._note_upload(5_000)
    assert pool.n_free_blocks() == 2


def test_parts_of_remote_objects_are_forgotten_without_a_line_of_python() -> None:
    array = array_core.fresh(Client(), contiguous((3,), np.dtype("f8")), 77)
    array._dropped = None
    other = array_core.fresh(array._client, array._layout, 77)
    other._dropped = None
    remote_object._note_part(array)
    assert remote_object.are_parts(other)
    held = [array]
    del array
    assert set(python_run(held.clear)) <= {"ArrayCore.__del__", "__del__"}
    assert not remote_object.are_parts(other)
