"""What stands in a CUDA graph that was captured of one stream: launches, fills and copies, as the driver holds them.

CuPy captures graphs and runs them whole; to read what is in one takes the driver's own functions, ten of them.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
from collections.abc import Callable, Iterator
from ctypes import byref, c_int, c_size_t, c_uint, c_void_p
from typing import NamedTuple

__all__ = ["Copy", "Fill", "GraphReader", "Launch", "NotKernels", "Step", "is_address", "name_of"]

_KERNEL_NODE, _COPY_NODE, _FILL_NODE = range(3)
#: ``CU_MEMORYTYPE_DEVICE`` and ``CU_MEMORYTYPE_UNIFIED``.
_ON_DEVICE = (2, 4)
_COOPERATIVE, _CLUSTER = 2, 4
_Attribute = ctypes.c_uint8 * 64
_MEMORY_TYPE = 2
_SUCCESS, _INVALID_VALUE = 0, 1
#: So many nodes are asked for at once.
_USUAL_NODES = 16


class NotKernels(Exception):
    """Something else than plain launches, fills and copies stands in the graph."""


class Launch(NamedTuple):
    """One launch of a kernel."""

    function: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    #: The bytes of each parameter.
    parameters: tuple[bytes, ...]


class Fill(NamedTuple):
    """Memory set to one byte throughout."""

    value: int
    size_bytes: int
    #: Its address.
    parameters: tuple[bytes]


class Copy(NamedTuple):
    """Memory copied in a row, or what may be such: whether both are the device's is for the addresses to say."""

    size_bytes: int
    #: Where to, and from where.
    parameters: tuple[bytes, bytes]


Step = Launch | Fill | Copy


class _CopyNode(ctypes.Structure):
    """``CUDA_MEMCPY3D``."""

    _fields_ = [
        ("from_x", c_size_t), ("from_y", c_size_t), ("from_z", c_size_t), ("from_lod", c_size_t),
        ("from_type", c_uint), ("from_host", c_void_p), ("from_device", ctypes.c_uint64), ("from_array", c_void_p),
        ("from_reserved", c_void_p), ("from_pitch", c_size_t), ("from_height", c_size_t),
        ("to_x", c_size_t), ("to_y", c_size_t), ("to_z", c_size_t), ("to_lod", c_size_t),
        ("to_type", c_uint), ("to_host", c_void_p), ("to_device", ctypes.c_uint64), ("to_array", c_void_p),
        ("to_reserved", c_void_p), ("to_pitch", c_size_t), ("to_height", c_size_t),
        ("width", c_size_t), ("height", c_size_t), ("depth", c_size_t),
    ]  # fmt: skip


class _FillNode(ctypes.Structure):
    """``CUDA_MEMSET_NODE_PARAMS``."""

    _fields_ = [
        ("address", ctypes.c_uint64), ("pitch", c_size_t), ("value", c_uint), ("element_bytes", c_uint),
        ("width", c_size_t), ("height", c_size_t),
    ]  # fmt: skip


class _KernelNode(ctypes.Structure):
    """``CUDA_KERNEL_NODE_PARAMS_v2``."""

    _fields_ = [
        ("function", c_void_p), ("grid", c_uint * 3), ("block", c_uint * 3), ("shared_bytes", c_uint),
        ("parameters", ctypes.POINTER(c_void_p)), ("extra", c_void_p), ("kernel", c_void_p), ("context", c_void_p),
    ]  # fmt: skip


@functools.cache
def _driver() -> ctypes.CDLL:
    return ctypes.CDLL("libcuda.so.1")


class GraphReader:
    """Reads what several captures of one op left: it remembers of each kernel how large its parameters are.

    Not for longer: another kernel may come to lie where one was unloaded.
    """

    def __init__(self) -> None:
        self._sizes: dict[int, tuple[int, ...]] = {}

    def launches(self, graph: int) -> list[Step]:
        """Return what stands in ``graph``, one behind the other.

        Raises
        ------
        NotKernels
            If there is anything else in it, or its order is not that of one stream.
        """
        return [self._step(node) for node in _in_order(graph)]

    def _step(self, node: int) -> Step:
        kind = c_int()
        _check(_driver().cuGraphNodeGetType(c_void_p(node), byref(kind)))
        if kind.value == _KERNEL_NODE:
            return self._launch(node)
        if kind.value not in _READERS:
            raise NotKernels(f"a node of type {kind.value}")
        return _READERS[kind.value](node)

    def _launch(self, node: int) -> Launch:
        found = _KernelNode()
        _check(_driver().cuGraphKernelNodeGetParams_v2(c_void_p(node), byref(found)))
        if found.extra or not found.function:
            raise NotKernels("parameters in one piece, or a kernel of no context")
        for attribute in (_COOPERATIVE, _CLUSTER):
            value = _Attribute()
            _check(_driver().cuGraphKernelNodeGetAttribute(c_void_p(node), attribute, byref(value)))
            if any(value[:4]) and (attribute == _COOPERATIVE or bytes(value[:12]) != b"\1\0\0\0" * 3):
                raise NotKernels("blocks that work together")
        if found.function not in self._sizes:
            self._sizes[found.function] = tuple(_sizes_of_parameters(found.function))
        sizes = self._sizes[found.function]
        parameters = tuple([ctypes.string_at(found.parameters[number], size) for number, size in enumerate(sizes)])
        return Launch(found.function, tuple(found.grid), tuple(found.block), found.shared_bytes, parameters)


def is_address(word: int) -> bool:
    """Tell whether ``word`` is an address that CUDA knows, of the device or of the host."""
    kind = c_uint()
    return bool(_driver().cuPointerGetAttribute(byref(kind), _MEMORY_TYPE, c_void_p(word)) == _SUCCESS)


def name_of(function: int) -> str:
    """Return the name of a kernel; "" if the driver does not tell."""
    name = ctypes.c_char_p()
    found = _driver().cuFuncGetName(byref(name), c_void_p(function)) == _SUCCESS
    return (name.value or b"").decode(errors="replace") if found else ""


def _in_order(graph: int) -> list[int]:
    nodes = _all_nodes(graph)
    if len(nodes) <= 1:
        return nodes
    count = c_size_t(0)
    _check(_driver().cuGraphGetEdges(c_void_p(graph), None, None, byref(count)))
    if count.value != len(nodes) - 1:
        raise NotKernels("more than one stream")
    before, after = (c_void_p * count.value)(), (c_void_p * count.value)()
    _check(_driver().cuGraphGetEdges(c_void_p(graph), before, after, byref(count)))
    follows = dict(zip(before, after, strict=True))
    first = set(nodes) - set(follows.values())
    if len(follows) != count.value or len(first) != 1:
        raise NotKernels("more than one stream")
    found = [first.pop()]
    while (node := follows.get(found[-1])) is not None:
        found.append(node)
    return found


def _all_nodes(graph: int) -> list[int]:
    count = c_size_t(_USUAL_NODES)
    nodes = (c_void_p * _USUAL_NODES)()
    _check(_driver().cuGraphGetNodes(c_void_p(graph), nodes, byref(count)))
    if count.value == _USUAL_NODES:  # there may be more
        _check(_driver().cuGraphGetNodes(c_void_p(graph), None, byref(count)))
        nodes = (c_void_p * count.value)()
        _check(_driver().cuGraphGetNodes(c_void_p(graph), nodes, byref(count)))
    return [one for one in nodes[: count.value] if one is not None]


def _fill(node: int) -> Fill:
    found = _FillNode()
    _check(_driver().cuGraphMemsetNodeGetParams(c_void_p(node), byref(found)))
    if found.height != 1 or found.element_bytes != 1:
        raise NotKernels("memory set to something else than bytes in a row")
    return Fill(found.value, found.width, (found.address.to_bytes(8, "little"),))


def _copy(node: int) -> Copy:
    found = _CopyNode()
    _check(_driver().cuGraphMemcpyNodeGetParams(c_void_p(node), byref(found)))
    starts = (found.from_x, found.from_y, found.from_z, found.to_x, found.to_y, found.to_z)
    is_row = found.height == found.depth == 1 and not any(starts)
    if not is_row or found.from_type not in _ON_DEVICE or found.to_type not in _ON_DEVICE:
        raise NotKernels("a copy to or from the host, or not in a row")
    return Copy(found.width, (found.to_device.to_bytes(8, "little"), found.from_device.to_bytes(8, "little")))


def _sizes_of_parameters(function: int) -> Iterator[int]:
    offset, size = c_size_t(), c_size_t()
    for number in itertools.count():
        result = _driver().cuFuncGetParamInfo(c_void_p(function), c_size_t(number), byref(offset), byref(size))
        if result == _INVALID_VALUE:
            return
        _check(result)
        yield size.value


def _check(result: int) -> None:
    if result != _SUCCESS:
        raise NotKernels(f"the driver answers {result}")


_READERS: dict[int, Callable[[int], Fill | Copy]] = {_COPY_NODE: _copy, _FILL_NODE: _fill}
