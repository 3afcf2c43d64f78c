"""What is given another device's arrays is put in order with that device's work; all else goes as it comes."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from gpu_backend.devices.cpu.device import CpuDevice
from gpu_backend.opstream.devices import default_stream
from gpu_backend.wire.messages import Op, Want
from gpu_backend.wire.values import Dict, List, Ref, Tuple, Value, View
from tests.unit.executor.program.played import PlayedNotebook

HERE, THERE = 7, default_stream(1) | 7


class Ordered(CpuDevice):
    """Two devices that note what is put in order with whom, and what is then given a device."""

    def __init__(self) -> None:
        super().__init__(2)
        self.noted: list[object] = []

    @contextmanager
    def in_order_with(self, others: Collection[int]) -> Iterator[None]:
        """Note when it begins and ends."""
        self.noted.append(sorted(others))
        try:
            yield
        finally:  # also of ops that fail
            self.noted.append("done")


@pytest.fixture
def notebook() -> Iterator[PlayedNotebook]:
    device = Ordered()
    one = PlayedNotebook(device=device)
    one.run(
        Op("cupy.zeros", HERE, (6,)),
        Op("cupy.ones", THERE, (6,), stream=default_stream(1)),
    )
    assert device.noted == []
    yield one
    CpuDevice()


def view(handle: int) -> View:
    return View(handle, 0, (3,), (8,), "<f8", "")


@pytest.mark.parametrize(
    ("args", "stream", "others"),
    [
        ((Ref(HERE),), 0, None),
        ((Ref(THERE),), 1, None),
        ((Ref(THERE),), 0, [1]),
        ((view(THERE),), 0, [1]),
        ((view(HERE),), 1, [0]),
        ((List((Ref(HERE), Ref(THERE))),), 0, [1]),
        ((Tuple((view(THERE),)),), 0, [1]),
        ((Dict(((1, Ref(THERE)),)),), 0, [1]),
        ((Ref(default_stream(5) | 7),), 0, None),  # there is no such device: the op says so
        ((3.0, "text", None), 1, None),
    ],
)
@pytest.mark.parametrize("want", [Want.NOTHING, Want.DESCRIPTION])
def test_an_op_is_in_order_with_the_devices_of_its_arrays(
    notebook: PlayedNotebook, args: tuple[Value, ...], stream: int, others: list[int] | None, want: Want
) -> None:
    device = notebook.device
    assert isinstance(device, Ordered)
    notebook.run(Op(".nothing", 0, args, None, want, stream=default_stream(stream)))
    assert device.noted == ([] if others is None else [others, "done"])


def test_keywords_count_too(notebook: PlayedNotebook) -> None:
    notebook.run(Op(".nothing", 0, (), None, Want.NOTHING, {"x": Ref(THERE)}))
    assert isinstance(notebook.device, Ordered)
    assert notebook.device.noted[:1] == [[1]]


def test_what_is_copied_over_is_there(notebook: PlayedNotebook) -> None:
    notebook.run(Op("cupy.asarray", 9, (Ref(THERE),)))
    np.testing.assert_array_equal(notebook.contents(Ref(9)), np.ones(6))
    assert isinstance(notebook.device, Ordered)
    assert notebook.device.noted == [[1], "done"]
