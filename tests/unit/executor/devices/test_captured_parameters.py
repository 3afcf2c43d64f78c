"""In what launches were given it is found where addresses and numbers stand; whatever else differs is not repeated."""

from __future__ import annotations

from collections.abc import Sequence
from struct import pack

import numpy as np
import pytest

from gpu_backend.devices import captured_parameters
from gpu_backend.devices.captured_parameters import BLOCKS, FIRST, MIDDLE, ROOM, Differs, Moved, Parameters
from gpu_backend.devices.replays import Patch, Slot, Unrepeatable

F8, F4 = np.dtype("f8"), np.dtype("f4")
#: How far the first operand and the first block lie in each of three traces; and operand 1, in which type it is what.
MOVES = [{0: 0, BLOCKS: 0}, {0: 8008, BLOCKS: 9216}, {0: 16016, BLOCKS: 18432}]
TRACES = [Moved(rooms, {}) for rooms in MOVES]
NUMBERED = [Moved(rooms, {1: (F4, pack("<f", 2.0 + number))}) for number, rooms in enumerate(MOVES)]
OPERAND, BLOCK = FIRST + MIDDLE, FIRST + BLOCKS * ROOM
SOMEBODYS = 0x7F00_0000_1000


@pytest.fixture(autouse=True)
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    words: list[int] = []

    def is_address(word: int) -> bool:
        words.append(word)
        return word == SOMEBODYS

    monkeypatch.setattr(captured_parameters, "is_address", is_address)
    return words


def words(*each: Sequence[int] | int) -> list[bytes]:
    """Return a parameter of these words as it was in three traces; a word that changes is a sequence."""
    table = [[one] * 3 if isinstance(one, int) else one for one in each]
    return [pack(f"<{len(table)}Q", *one) for one in zip(*table, strict=True)]


def moved(room: int, start: int) -> list[int]:
    return [start + rooms[room] for rooms in MOVES]


def test_addresses_are_found_with_how_far_behind_the_first_element_they_point() -> None:
    found = Parameters(TRACES, False)
    array = words(moved(0, OPERAND + 24), 12, 4, 3, 24, 8)
    assert found.add(array, False) == 0
    assert found.add(words(moved(BLOCKS, BLOCK + 512)), False) == len(array[0])
    assert found.patches == [Patch(0, 0, 24), Patch(len(array[0]), BLOCKS, 512)]
    assert found.content == array[0] + pack("<Q", BLOCK + 512)
    assert not found.slots


@pytest.mark.parametrize("size", [8, 4, 2, 1])
def test_a_whole_number_may_be_taken_as_a_narrower_one(size: int) -> None:
    long = np.dtype("i8")
    traces = [Moved(rooms, {1: (long, pack("<q", 5 + number))}) for number, rooms in enumerate(MOVES)]
    found = Parameters(traces, False)
    found.add([one.numbers[1][1][:size] for one in traces], False)
    assert found.slots == [Slot(0, 1, long)]
    assert len(found.content) == long.itemsize  # all of it is written


def test_a_floating_number_may_not() -> None:
    traces = [Moved(rooms, {1: (F8, pack("<d", (5 + number) / 3))}) for number, rooms in enumerate(MOVES)]
    with pytest.raises(Differs):
        Parameters(traces, False).add([one.numbers[1][1][:4] for one in traces], False)


def test_numbers_are_found_by_their_bytes_and_each_begins_at_a_word() -> None:
    found = Parameters(NUMBERED, False)
    assert [found.add([pack("<i", 7)] * 3, False), found.add([one.numbers[1][1] for one in NUMBERED], False)] == [0, 8]
    assert found.slots == [Slot(8, 1, F4)]
    assert len(found.content) == 16


@pytest.mark.parametrize(
    ("parameter", "why"),
    [
        (words([1, 2, 3]), "parameters that differ"),
        ([pack("<i", one) for one in (1, 2, 3)], "parameters that differ"),
        (words([OPERAND, OPERAND + 8, OPERAND + 16]), "do not follow an address"),
        (words([FIRST + 5 * ROOM, FIRST + 5 * ROOM + 8, FIRST]), "do not follow an address"),
        (words(SOMEBODYS), "memory of others"),
        (words(8, moved(0, OPERAND), SOMEBODYS), "memory of others"),
    ],
)
def test_whatever_else_differs_or_points_elsewhere_is_not_repeated(parameter: list[bytes], why: str) -> None:
    with pytest.raises(Unrepeatable, match=why):
        Parameters(TRACES, False).add(parameter, False)


def test_what_leads_to_plans_may_point_elsewhere() -> None:
    assert Parameters(TRACES, True).add(words(SOMEBODYS), False) == 0


def test_words_that_look_like_an_address_and_stay_the_same_are_numbers() -> None:
    found = Parameters(TRACES, False)
    found.add(words(OPERAND), False)
    assert not found.patches


@pytest.mark.parametrize("rest", [[1, 2, 3], SOMEBODYS, moved(BLOCKS, OPERAND)])
def test_the_end_of_an_indexer_is_read_by_nobody(rest: Sequence[int] | int) -> None:
    indexer = words(12, 4, 3, rest, rest)
    Parameters(TRACES, False).add(indexer, True)
    with pytest.raises(Unrepeatable):
        Parameters(TRACES, False).add(indexer, False)
    with pytest.raises(Unrepeatable):  # 4 by 3 are not 13
        Parameters(TRACES, False).add(words(13, 4, 3, rest, rest), True)


def test_what_changes_when_nothing_else_does_is_memory_that_nobody_has_set() -> None:
    found = Parameters(TRACES, True, [0, 0])
    again = [*words(7, [1, 2, 3]), *[pack("<2Q", 7, one) for one in (4, 5)]]
    found.add(again, False)
    assert found.content[:8] == pack("<Q", 7)
    assert not found.patches


@pytest.mark.parametrize("strange", range(3))
def test_it_is_enough_that_one_of_the_traces_was_another_when_repeated(strange: int) -> None:
    once = [[9, 9, 9], moved(0, OPERAND)]
    once[0][strange] = SOMEBODYS
    every = [*words(*once), *words(9, moved(0, OPERAND))]
    found = Parameters(TRACES, False, range(3))
    found.add(every, False)
    assert found.patches == [Patch(8, 0, 0)]


def test_what_is_as_different_when_repeated_is_not_unset() -> None:
    for each in ([1, 2, 3], [OPERAND, OPERAND + 8, OPERAND + 16]):
        with pytest.raises(Differs):
            Parameters(TRACES, True, range(3)).add([*words(each), *words(each)], False)


@pytest.mark.parametrize("read", ["<II", "<IIx", "<IIBBx"])
def test_a_half_that_is_read_is_not_hidden_by_one_that_nobody_has_set(read: str) -> None:
    """It differs by trace, the other half as it comes; as words, and as what is left behind the last word."""
    count = read.count("B")
    for set_, unset in ((0, 1), (1, 0)):
        every = []
        for by_trace, by_chance in [(1, 5), (2, 6), (3, 5), (1, 5), (2, 9), (3, 5)]:
            halves = [0, 0]
            halves[set_], halves[unset] = by_trace, by_chance
            every.append(pack(read, *halves, *[by_chance] * count))
        with pytest.raises(Differs):
            Parameters(TRACES, True, range(3)).add(every, False)


def test_what_is_set_by_cupy_is_not_believed_to_be_unset() -> None:
    every = [*words([1, 2, 3], moved(0, OPERAND)), *words([4, 5, 6], moved(0, OPERAND))]
    Parameters(TRACES, True, range(3)).add(every, False)
    with pytest.raises(Differs):
        Parameters(TRACES, True, range(3)).add(every, True)


def test_the_end_of_an_indexer_is_known_in_what_is_repeated_as_well() -> None:
    every = [*words(12, 4, 3, [1, 2, 3], SOMEBODYS), *words(12, 4, 3, [4, 2, 3], 7)]
    Parameters(TRACES, False, range(3)).add(every, True)


def test_an_address_that_is_followed_each_time_is_one_in_what_is_repeated_as_well() -> None:
    found = Parameters(TRACES, False, range(3))
    found.add([*words(moved(0, OPERAND)), *words(moved(0, OPERAND))], False)
    assert found.patches == [Patch(0, 0, 0)]


def test_the_last_bytes_are_held_to_the_same() -> None:
    ends = [pack("<Qi", 7, one) for one in (1, 2, 3)]
    with pytest.raises(Unrepeatable, match="parameters that differ"):
        Parameters(TRACES, False).add(ends, False)
    with pytest.raises(Unrepeatable, match="parameters that differ"):
        Parameters(TRACES, True, [0, 0]).add([*ends, ends[0], ends[0]], False)
    Parameters(TRACES, True, [0, 0]).add([*ends, pack("<Qi", 7, 4), pack("<Qi", 7, 5)], False)


def test_the_driver_is_asked_once_for_each_word_that_may_be_an_address(asked: list[int]) -> None:
    found = Parameters(TRACES, False)
    for _ in range(3):
        found.add(words(moved(0, OPERAND), 1 << 20, 4, 1 << 16, 65535, 0), False)
    assert asked == [1 << 20, 1 << 16]
