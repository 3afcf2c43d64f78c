"""What a captured graph holds is read in the order of its one stream, or refused."""

from __future__ import annotations

import ctypes
import random
from typing import Any

import pytest

from gpu_backend.devices import cuda_graphs
from gpu_backend.devices.cuda_graphs import Fill, GraphReader, Launch, NotKernels, Step

GRAPH, FIRST_NODE = 7, 100
SIZES, CONTENT = (8, 4), (b"8 bytes.", b"four")


class PlayedDriver:
    """Answers as the driver does, of a graph of kernels with a fill at the end; ``edges`` are between numbers."""

    def __init__(self, count: int, edges: list[tuple[int, int]]) -> None:
        self.nodes = [FIRST_NODE + number for number in range(count)]
        random.Random(count).shuffle(self.nodes)
        self.edges = [(FIRST_NODE + before, FIRST_NODE + after) for before, after in edges]
        self.asked: list[str] = []
        self._held = [ctypes.create_string_buffer(one, len(one)) for one in CONTENT]
        self._parameters = (ctypes.c_void_p * len(CONTENT))(*map(ctypes.addressof, self._held))

    def cuGraphGetNodes(self, graph: Any, nodes: Any, count: Any) -> int:
        self.asked.append("nodes")
        if nodes is not None:
            for place in range(len(nodes)):
                nodes[place] = self.nodes[place] if place < len(self.nodes) else None
        count._obj.value = len(self.nodes) if nodes is None else min(len(nodes), len(self.nodes))
        return 0

    def cuGraphGetEdges(self, graph: Any, before: Any, after: Any, count: Any) -> int:
        self.asked.append("edges")
        for place, (one, other) in enumerate(self.edges if before is not None else []):
            before[place], after[place] = one, other
        count._obj.value = len(self.edges)
        return 0

    def cuGraphNodeGetType(self, node: Any, kind: Any) -> int:
        kind._obj.value = 2 if node.value == FIRST_NODE + len(self.nodes) - 1 else 0
        return 0

    def cuGraphKernelNodeGetParams_v2(self, node: Any, found: Any) -> int:
        found._obj.function, found._obj.grid[0], found._obj.extra = 1 + node.value % 2, node.value, None
        found._obj.parameters = ctypes.cast(self._parameters, ctypes.POINTER(ctypes.c_void_p))
        return 0

    def cuGraphKernelNodeGetAttribute(self, node: Any, attribute: int, value: Any) -> int:
        return 0

    def cuGraphMemsetNodeGetParams(self, node: Any, found: Any) -> int:
        found._obj.height = found._obj.element_bytes = 1
        found._obj.width = node.value
        return 0

    def cuFuncGetParamInfo(self, function: Any, number: Any, offset: Any, size: Any) -> int:
        self.asked.append(f"parameter of {function.value}")
        if number.value == len(SIZES):
            return 1
        size._obj.value = SIZES[number.value]
        return 0


def number_of(step: Step) -> int:
    assert isinstance(step, Launch | Fill)
    return (step.grid[0] if isinstance(step, Launch) else step.size_bytes) - FIRST_NODE


@pytest.mark.parametrize("count", [0, 1, 2, 15, 16, 17, 40])
def test_nodes_are_read_in_the_order_of_their_stream(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    driver = PlayedDriver(count, [(number, number + 1) for number in range(count - 1)])
    monkeypatch.setattr(cuda_graphs, "_driver", lambda: driver)
    reader = GraphReader()
    found = reader.launches(GRAPH)
    assert [number_of(one) for one in found] == list(range(count))
    assert [type(one) for one in found[-1:]] == [Fill] * bool(count)
    assert all(one.parameters == CONTENT for one in found[:-1])
    functions = {one.function for one in found if isinstance(one, Launch)}
    reader.launches(GRAPH)
    asked = [one for one in driver.asked if one.startswith("parameter")]
    assert len(asked) == len(functions) * (len(SIZES) + 1), "once for each kernel"


@pytest.mark.parametrize(
    ("count", "edges"), [(2, []), (3, [(0, 1)]), (3, [(0, 2), (1, 2)]), (3, [(0, 1), (0, 2)]), (4, [(0, 1), (2, 3)])]
)
def test_what_is_not_one_behind_the_other_is_refused(
    monkeypatch: pytest.MonkeyPatch, count: int, edges: list[tuple[int, int]]
) -> None:
    driver = PlayedDriver(count, edges)
    monkeypatch.setattr(cuda_graphs, "_driver", lambda: driver)
    with pytest.raises(NotKernels, match="more than one stream"):
        GraphReader().launches(GRAPH)
