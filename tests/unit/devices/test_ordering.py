"""Which instructions of a table go on without waiting: never one that shares memory with another thread's element."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from gpu_backend.devices.segments import AXES, HEADER_BYTES, INSTRUCTION_BYTES, OPERANDS, VALUES, WORDS
from tests.unit.devices.noting_driver import Driver

#: An operand: of how many bytes its elements are, where the first lies, and its strides.
Operand = tuple[int, int, tuple[int, ...]]
#: The extents, and the operands, of which the last is written.
Op = tuple[tuple[int, ...], tuple[Operand, ...]]

NUMBER: Operand = (0, 1, (0,))


def instruction(op: Op) -> bytes:
    extents, operands = op
    rest = [0] * (OPERANDS - len(operands))
    elements = 1
    for one in extents:
        elements *= one
    widths, places = [one[0] for one in operands], [one[1] for one in operands]
    strides = [step for _, _, steps in operands for step in (*steps, *[0] * (AXES - len(steps)))]
    words = WORDS.pack(
        0, elements, len(extents), 0, *widths, *rest, *extents, *[1] * (AXES - len(extents)), *places, *rest,
        *strides, *[0] * AXES * len(rest),
    )  # fmt: skip
    return words.ljust(INSTRUCTION_BYTES, b"\0")


def waiting(ops: Sequence[Op], blocks: int = 2) -> list[bool]:
    """Return of each op whether it waits for those before it, as a table of so many blocks has it."""
    driver = Driver()
    launch = driver.launcher.tables(((7, 200),), blocks, 1, 1, 1)
    table = bytearray(HEADER_BYTES + 200 * INSTRUCTION_BYTES)
    for number, op in enumerate(ops):
        at = HEADER_BYTES + number * INSTRUCTION_BYTES
        table[at : at + INSTRUCTION_BYTES] = instruction(op)
    launch(table, len(ops), 1000)
    launch(table, len(ops), 1000)
    found = [not WORDS.unpack_from(table, HEADER_BYTES + n * INSTRUCTION_BYTES)[3] for n in range(len(ops))]
    waits = sum(found[1:])
    assert found[0]
    (_, shape, first), (_, _, second) = driver.launched
    assert (second >> 32) - (first >> 32) == blocks * waits
    assert (shape[-1] == -1) == (waits > 0)
    return found


def bytes_of(op: Op) -> Iterator[tuple[int, int, bool]]:
    """Yield each byte that an op touches, by which element, and whether that writes it."""
    extents, operands = op
    for number, (width, first, strides) in enumerate(operands):
        if first < VALUES:
            continue
        for element, where in enumerate(product(*map(range, extents))):
            place = first + sum(at * step for at, step in zip(where, strides, strict=True))
            for byte in range(place, place + width):
                yield byte, element, number == len(operands) - 1


def is_injective(op: Op) -> bool:
    written = [byte for byte, _, is_written in bytes_of(op) if is_written]
    return len(written) == len(set(written))


def axes_of(extents: tuple[int, ...], width: int) -> st.SearchStrategy[tuple[int, ...]]:
    """Strides: of an array in C order, of a window of a wider one, turned round, broadcast, or any."""
    packed, steps = width, []
    for extent in reversed(extents):
        steps.append(packed)
        packed *= extent
    in_order = tuple(reversed(steps))
    wider = tuple(step + width * (at < len(steps) - 1) for at, step in enumerate(in_order))
    some = [in_order, in_order, wider, tuple(reversed(in_order)), tuple(-one for one in in_order), (0,) * len(extents)]
    return st.one_of(st.sampled_from(some), st.tuples(*[st.integers(-16, 16)] * len(extents)))


@st.composite
def an_op(draw: st.DrawFn) -> Op:
    extents = tuple(draw(st.lists(st.sampled_from([1, 2, 3, 5]), min_size=1, max_size=3)))
    operands: list[Operand] = []
    for _ in range(draw(st.integers(1, OPERANDS))):
        width = draw(st.sampled_from([1, 2, 4, 8]))
        first = 10_000 + draw(st.sampled_from([0, 0, 8, 16, 64, 128]))
        operands.append((width, first, draw(axes_of(extents, width))))
    if len(operands) > 1 and draw(st.booleans()):
        operands[0] = (0, 1, (0,) * len(extents))
    return extents, tuple(operands)


@settings(max_examples=1500, deadline=None)
@given(st.lists(an_op().filter(is_injective), min_size=2, max_size=7))
def test_what_goes_on_shares_each_byte_with_the_same_element_alone(ops: list[Op]) -> None:
    before: list[tuple[int, int, bool]] = []
    for op, waits in zip(ops, waiting(ops), strict=True):
        touched = list(bytes_of(op))
        if waits:
            before.clear()
        for byte, element, is_written in touched:
            for other, another, was_written in before:
                if byte == other and (is_written or was_written):
                    assert element == another, (byte, ops)
        before += touched


@settings(max_examples=300, deadline=None)
@given(an_op().filter(is_injective), st.integers(2, 6))
def test_what_is_done_again_in_its_place_goes_on(op: Op, times: int) -> None:
    extents, operands = op
    width, first, strides = operands[-1]
    assume(all(not one[0] for one in operands[:-1]))
    again = (extents, ((width, first, strides), (width, first, strides)))
    assert waiting([op, *[again] * times]) == [True, *[False] * times]


A, B, T, U = 10_000, 20_000, 30_000, 40_000


def row(first: int, width: int = 8) -> Operand:
    return width, first, (width,)


def inner(first: int, wide: int, width: int = 8) -> Operand:
    return width, first, (wide * width, width)


def test_the_ops_of_a_stencil_wait_where_another_element_is_read() -> None:
    """``b[1:-1, 1:-1] = 0.25 * (a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2])``, and again from ``b`` to ``a``."""

    def turn(of: int, into: int) -> list[Op]:
        inside = (4, 4)
        return [
            (inside, (inner(of + 8, 6), inner(of + 104, 6), inner(T, 4))),
            (inside, (inner(T, 4), inner(of + 48, 6), inner(U, 4))),
            ((16,), (NUMBER, row(U), row(T))),
            (inside, (inner(T, 4), inner(into + 56, 6))),
        ]

    assert waiting([*turn(A, B), *turn(B, A), *turn(A, B)]) == 3 * [True, False, False, False]


@pytest.mark.parametrize(
    ("first", "second", "waits"),
    [
        (((8,), (row(A), row(B))), ((8,), (row(B), row(T))), False),
        (((8,), (row(A), row(B))), ((8,), (row(B + 8), row(T))), True),
        (((8,), (row(A), row(B))), ((5,), (row(B), row(T))), False),
        (((5,), (row(A), row(B))), ((8,), (row(B), row(T))), False),
        (((8,), (row(A), row(B))), ((8,), ((8, B + 56, (-8,)), row(T))), True),
        (((8,), (row(A), row(B))), ((8,), ((8, B, (0,)), row(T))), True),
        (((1,), (NUMBER, (8, B, (0,)))), ((8,), ((8, B, (0,)), row(T))), True),
        (((1,), (NUMBER, (8, B, (0,)))), ((8,), (row(B), row(T))), False),
        (((8,), (row(A), row(B))), ((8,), ((4, B, (8,)), row(T))), False),
        (((8,), (row(A), row(B))), ((8,), ((4, B + 4, (8,)), row(T))), True),
        (((8,), (row(A), row(B))), ((8,), (row(T), row(A))), False),
        (((8,), (row(A), row(B))), ((8,), (row(T), row(A + 8))), True),
        (((8,), (row(A), row(B))), ((8,), (row(T), row(A + 64))), False),
        (((8,), (row(A), row(B))), ((8,), (row(A + 8), row(T))), False),
        (((2, 4), (NUMBER, inner(B, 6))), ((2, 4), (inner(B, 6), row(T))), False),
        (((2, 4), (NUMBER, inner(B, 6))), ((4, 2), (inner(B, 6), row(T))), True),
        (((2, 4), (NUMBER, inner(B, 6, 4))), ((2, 4), ((8, B, (24, 4)), row(T))), True),
    ],
)
def test_two_ops_wait_or_do_not(first: Op, second: Op, waits: bool) -> None:
    extents, operands = second
    operands = tuple((width, at, (*steps, *(0,) * (len(extents) - len(steps)))) for width, at, steps in operands)
    if len(extents) == 2 and operands[-1][1] == T:
        operands = (*operands[:-1], inner(T, extents[1]))
    assert waiting([first, (extents, operands)]) == [True, waits]


def test_all_wait_behind_more_than_is_remembered() -> None:
    ops: list[Op] = [((4,), (row(A + 64 * n), row(B + 64 * n))) for n in range(40)]
    found = waiting(ops)
    assert found == [n % 16 == 0 for n in range(40)]


def test_one_block_waits_for_itself() -> None:
    driver = Driver()
    launch = driver.launcher.tables(((7, 200),), 1, 1, 1, 1)
    table = bytearray(HEADER_BYTES + 200 * INSTRUCTION_BYTES)
    op = instruction(((8,), (row(A), row(B))))
    table[HEADER_BYTES : HEADER_BYTES + 2 * INSTRUCTION_BYTES] = op + op
    launch(table, 2, 8)
    assert table[HEADER_BYTES : HEADER_BYTES + 2 * INSTRUCTION_BYTES] == op + op
