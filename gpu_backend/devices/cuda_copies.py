"""Copies among what CuPy launches: a roll is two, a concatenation one of each array; to whom they can be told apart.

CuPy copies by its ufunc ``cupy_copy``, whose kernel is given two ``CArray`` and a ``CIndexer`` (their words stand in
``cupy/_core/_carray.pyx`` of CuPy 14.2), or in a row by the driver's own copy. It fills with zeros by the driver, too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import prod

import numpy as np

from gpu_backend.devices.cuda_graphs import Copy, Fill, Launch, Step, name_of
from gpu_backend.devices.replays import ZEROS, Copied, Patch
from gpu_backend.opstream.layout import DType, Layout, contiguous, strided

__all__ = ["copies"]

_KERNEL = re.compile(r"cupy_copy__([a-z]+[0-9]*)_([a-z]+[0-9]*)")
_WORD = 8
_NOTHING = Patch(0, ZEROS, 0)
#: As what bytes are copied: the widest that they and where they lie are multiples of.
_UNITS: tuple[DType, ...] = tuple(np.dtype(f"i{size}") for size in (8, 4, 2, 1))


def copies(
    steps: Sequence[Step], places: Sequence[Sequence[int]], patches: Sequence[Patch], units: Mapping[int, int]
) -> tuple[Copied, ...]:
    """Return what ``steps`` copy, one behind the other; nothing if one of them does anything else.

    Parameters
    ----------
    places
        Where the parameters of each step stand, as in ``patches``.
    units
        What the address of each block and operand is a multiple of.
    """
    addresses = {patch.at: patch for patch in patches}
    found: list[Copied] = []
    for step, at in zip(steps, places, strict=True):
        ends = [addresses.get(one) for one in at[:2]]
        copied = _copied(step, ends, units) if None not in ends else None
        if copied is None:
            return ()
        found.append(copied)
    return tuple(found)


def _copied(step: Step, ends: Sequence[Patch | None], units: Mapping[int, int]) -> Copied | None:
    if type(step) is Launch:
        return _by_kernel(step, *ends)
    if type(step) is Copy:
        into, of = ends
        return _in_a_row(of, into, step.size_bytes, units)
    return _in_a_row(_NOTHING, ends[0], step.size_bytes, units) if type(step) is Fill and not step.value else None


def _by_kernel(step: Launch, *ends: Patch | None) -> Copied | None:
    types = _KERNEL.fullmatch(name_of(step.function))
    if types is None or types[1] != types[2] or len(step.parameters) != 3 or len(ends) != 2:
        return None
    of, into = ends
    dtype: DType = np.dtype(types[1])
    lies, target = (_lies(one, dtype) for one in step.parameters[:2])
    elements = int.from_bytes(step.parameters[2][:_WORD], "little")
    if of is None or into is None or lies is None or target is None or lies.shape != target.shape:
        return None
    if elements != prod(lies.shape):
        return None
    return Copied(of.source, of.displacement, lies, into.source, into.displacement, target)


def _lies(array: bytes, dtype: DType) -> Layout | None:
    """Return how a ``CArray`` lies: behind its address and its size stand its extents and its strides."""
    if len(array) % (2 * _WORD):
        return None
    words = [int(one) for one in np.frombuffer(array, np.int64)[2:]]
    axes = len(words) // 2
    return strided(tuple(words[:axes]), tuple(words[axes:]), dtype)


def _in_a_row(of: Patch | None, into: Patch | None, size_bytes: int, units: Mapping[int, int]) -> Copied | None:
    if of is None or into is None:
        return None
    multiples = [size_bytes, of.displacement, into.displacement]
    multiples += [units.get(one.source, 1) for one in (of, into) if one.source != ZEROS]
    dtype = next(unit for unit in _UNITS if not any(one % unit.itemsize for one in multiples))
    lies = contiguous((size_bytes // dtype.itemsize,), dtype)
    return Copied(of.source, of.displacement, lies, into.source, into.displacement, lies)
