"""Random programs give what CuPy alone makes of them with each set of passes; and what differs is seen."""

from __future__ import annotations

from collections.abc import Callable, Collection
from itertools import count
from typing import Any

import numpy as np
import pytest

from gpu_backend.devices import open_device
from gpu_backend.devices.base import Device
from gpu_backend.executor.config import PASSES
from gpu_backend.executor.program.run import OpStream
from tests.fuzz.hunting import Counts, hunt, look
from tests.fuzz.playing import Streams
from tests.fuzz.structure import Structure

CPU = open_device("cpu")


def structure(*statements: str) -> Structure:
    """Return a structure over doubles."""
    return Structure(
        seed=3, dtypes=dict.fromkeys("abcdqz", "d"), statements=[*statements], shapes=[(7, 5), (1, 9), (64, 64)],
        repeats=5, refreshed=[2], read=[1], learns=True,
    )  # fmt: skip


def planted(name: str, changed: Callable[[Any], Any]) -> Streams:
    """Return streams with passes in which the op ``name`` gives what ``changed`` makes of its result."""

    def stream(device: Device, passes: Collection[str]) -> OpStream:
        made, own = OpStream(device, passes), device.resolve(name)
        if passes:
            made._functions[name] = lambda *args: changed(own(*args))
        return made

    return stream


@pytest.mark.parametrize("seed", range(3))
def test_random_programs_give_the_same_with_each_set_of_passes(seed: int) -> None:
    counts = hunt(seed, CPU, structures=6, combinations=1 + len(PASSES))
    assert not [*counts.differences()]
    assert (counts.structures, counts.shapes) == (6, 18)
    assert counts.by_passes == {"all": 6, **{f"without {name}": 6 for name in PASSES}}
    assert counts.played == (1 + len(PASSES)) * counts.ops > 0


def test_a_seed_gives_the_same_programs() -> None:
    drawn: list[list[Structure]] = [[], []]
    for one in drawn:
        hunt(5, CPU, structures=3, combinations=1, note=one.append)
    assert drawn[0] == drawn[1]


def test_what_differs_is_made_small() -> None:
    program = structure("t1 = cp.sqrt(a * a + 1)", "t2 = b + 1", "t3 = cp.cbrt(t2)", "t2[1:] = t1[:-1]", "t4 = t3 * 2")
    counts = Counts()
    look(program, CPU, [PASSES], counts, planted("cupy.cbrt", lambda found: found + (found > 1)))
    (found,) = counts.found
    assert found.structure.statements == ["t2 = b + 1", "t3 = cp.cbrt(t2)"]
    assert len(found.structure.shapes) == 1
    assert found.structure.repeats == 1
    assert found.passes == [*PASSES]
    assert next(iter(counts.differences())) == f"DIFFERENT with {' '.join(PASSES)}:"


def test_another_payload_of_a_nan_is_a_difference() -> None:
    def paid(found: Any) -> Any:
        other = np.array([0x7FF8_0000_0000_0001], np.uint64).view("d")
        return CPU.upload(np.where(np.isnan(found.get()), other, found.get()))

    counts = Counts()
    look(structure("t1 = cp.sqrt(a)"), CPU, [PASSES], counts, planted("cupy.sqrt", paid))
    assert len(counts.found) == 1


def test_an_error_that_only_passes_raise_is_a_difference() -> None:
    def refused(found: Any) -> Any:
        raise ValueError("no")

    counts = Counts()
    look(structure("t1 = a + 1", "t2 = cp.exp(t1)"), CPU, [PASSES], counts, planted("cupy.exp", refused))
    (found,) = counts.found
    assert "builtins.ValueError" in found.told[1]


def test_what_cupy_alone_gives_differently_each_time_is_none() -> None:
    turns = count()

    def stream(device: Device, passes: Collection[str]) -> OpStream:
        made, own = OpStream(device, passes), device.resolve("cupy.exp")
        made._functions["cupy.exp"] = lambda *args: own(*args) + next(turns)
        return made

    counts, program = Counts(), structure("t1 = cp.exp(cp.zeros((n, m)))")
    look(program, CPU, [PASSES], counts, stream)
    assert (counts.unsteady, counts.found) == ([program], [])
