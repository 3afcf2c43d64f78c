"""Ops that are gathered give CuPy's own bits of every pair of special numbers, NaNs of all payloads among them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest

from gpu_backend.opstream.surface import Ufunc, load
from gpu_backend.wire.messages import Op
from gpu_backend.wire.values import Complex, Ref, Value
from tests.fuzz.given import specials
from tests.unit.executor.program.played import PlayedNotebook

pytestmark = [pytest.mark.timeout(600)]

FIRST, SECOND, MADE = 1, 2, 3
NUMBERS: list[Value] = [0.25, -0.0, float("nan"), float("inf"), 3]
COMPLEX: list[Value] = [Complex(0.5, -2.0), Complex(0.0, float("nan"))]
NAMES = [name for name, one in load().items() if isinstance(one, Ufunc) and one.nout == 1 and name.startswith("cupy.")]
#: What is done in one go: so many names have about as many routines as a program has room for.
TOGETHER = 4


class Asked(NamedTuple):
    """A ufunc on arrays of one dtype, and numbers."""

    name: str
    char: str
    args: tuple[Value, ...]


def asked(name: str, char: str) -> Iterator[Asked]:
    """Yield a ufunc's ways: of arrays, of an array and a number, of a number and an array."""
    described = load()[name]
    assert isinstance(described, Ufunc)
    if described.nin == 1:
        yield Asked(name, char, (Ref(FIRST),))
    if described.nin == 2:
        yield Asked(name, char, (Ref(FIRST), Ref(SECOND)))
        for number in [*NUMBERS, *(COMPLEX if char in "FD" else [])]:
            yield Asked(name, char, (Ref(FIRST), number))
            yield Asked(name, char, (number, Ref(SECOND)))


def pairs(char: str) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return two arrays with each pair of special numbers; of complex ones a sample of the pairs."""
    real = specials(char.lower() if char != "F" else "f") if char != "D" else specials("d")
    if char in "FD":
        drawn = np.random.default_rng(1)
        parts = drawn.choice(real, (2, 6000, 2))
        return parts[0].view(char).ravel(), parts[1].view(char).ravel()
    first, second = np.meshgrid(real, real)
    return first.ravel(), second.ravel()


def differences(names: Sequence[str], char: str, device: Any) -> tuple[list[Asked], int]:
    """Return what is gathered and gives other bits than by CuPy alone; and how much was gathered."""
    on, plain = PlayedNotebook(("segments",), device), PlayedNotebook((), device)
    for notebook in (on, plain):
        for handle, array in zip((FIRST, SECOND), pairs(char), strict=True):
            notebook.stream.heap.put(handle, device.upload(array))
            notebook.stream.heap.ownership.own(handle)
    every = [one for name in names for one in asked(name, char)]
    compiler = device.segments._compiler
    for _ in range(3):  # until all of it was wanted often enough, and compiled
        for _ in range(10):
            for one in every:
                _done(on, one)
        if compiler._thread is not None:
            compiler._thread.join()
        compiler._rests_until = 0.0
    assert on.stream._direct is not None
    assert on.stream._direct.segment is not None
    before, found = on.stream._direct.segment.gathered, []
    for one in every:
        if _done(on, one) != _done(plain, one):
            found.append(one)
    return found, on.stream._direct.segment.gathered - before


def _done(on: PlayedNotebook, one: Asked) -> object:
    failed = [answer.error.kind for answer in on.run(Op(one.name, MADE, one.args)) if answer.error is not None]
    said = failed or on.contents(Ref(MADE)).tobytes()
    on.run(Op(".nothing", 0, (), (MADE,)))
    on.answers.clear()
    return said


@pytest.mark.gpu_long
@pytest.mark.parametrize("char", "efdFD")
def test_special_numbers_give_cupys_bits(char: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from gpu_backend.devices import cuda_segments
    from gpu_backend.devices.cuda import CudaDevice

    monkeypatch.setattr(cuda_segments, "_MOST_ROUTINES", 96)
    device, gathered = CudaDevice(), 0
    for at in range(0, len(NAMES), TOGETHER):
        found, count = differences(NAMES[at : at + TOGETHER], char, device)
        assert not found
        gathered += count
    assert gathered > len(NAMES)
