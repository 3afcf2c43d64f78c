"""What one kind of call of an elementwise or reduction kernel comes to, worked out once and then only run."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gpu_backend.devices.cpu.kernels.launch import KernelEntry
from gpu_backend.devices.cpu.kernels.parameters import DType, ParameterInfo, scalar_array
from gpu_backend.devices.cpu.memory import LEDGER, as_out_of_memory
from gpu_backend.devices.cpu.several import DEVICES

Array = np.ndarray[Any, Any]

#: Plans are forgotten all at once when a kernel has been called with more kinds of arguments than this.
MAX_PLANS = 1024


class Plan(NamedTuple):
    """What one kind of call comes to: all but the addresses."""

    entry: KernelEntry | None  #: None if there is nothing to do
    layout: Array
    scalars: tuple[tuple[int, DType], ...]  #: position and type of each scalar argument
    shape: tuple[int, ...]  #: of the outputs that are to be made
    outputs: tuple[DType, ...]  #: their types; empty if they were given
    grid: int
    block: int


class Plans:
    """The plans of one kernel, by kind of call."""

    def __init__(self) -> None:
        self._plans: dict[tuple[Any, ...], Plan] = {}

    def get(self, key: tuple[object, ...], make: Callable[[], Plan]) -> Plan:
        """Return the plan for ``key``, made by ``make`` at the first time."""
        plan = self._plans.get(key)
        if plan is None:
            plan = make()
            if len(self._plans) >= MAX_PLANS:
                self._plans.clear()
            self._plans[key] = plan
        return plan


def stand_in(shape: tuple[int, ...], dtype: DType) -> Array:
    """Return an array with the layout of an output that is yet to be made, without its memory."""
    strides = [dtype.itemsize * math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    return np.lib.stride_tricks.as_strided(np.empty((), dtype), shape, strides)


def argument_kind(arg: object) -> Any:
    """Return all of an argument that a plan depends on."""
    return (arg.dtype, arg.shape, arg.strides) if isinstance(arg, np.ndarray) else type(arg)


def broadcast_shape(args: Sequence[object], params: Sequence[ParameterInfo], size: int) -> tuple[int, ...]:
    """Return the shape of a call's loop.

    Raises
    ------
    ValueError
        If the shapes do not fit, or ``size`` is given although an array decides, or not given although none does.
    """
    shapes = [
        arg.shape for arg, param in zip(args, params, strict=False) if isinstance(arg, np.ndarray) and not param.raw
    ]
    if size != -1:
        if shapes:
            raise ValueError("Specified 'size' can be used only if all of the ndarray are 'raw'.")
        return (size,)
    if not shapes:
        raise ValueError("Loop size is undecided.")
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        listed = " ".join(str(shape) for shape in shapes)
        raise ValueError(f"operands could not be broadcast together with shapes {listed}") from None


def check_outputs(given: Sequence[Any], params: Sequence[ParameterInfo], shape: tuple[int, ...], sized: bool) -> None:
    """Raise unless the ``given`` outputs can be written, or, if there are none, the outputs can be made."""
    if not given and not sized and any(param.raw for param in params):
        raise ValueError("Output array size is Undecided")
    for arg, param in zip(given, params, strict=False):
        if not isinstance(arg, np.ndarray):
            raise TypeError("Output arguments type must be cupy.ndarray")
        if not param.raw and arg.shape != shape:
            raise ValueError("Out shape is mismatched")


def make_outputs(plan: Plan) -> tuple[Array, ...]:
    """Return the outputs that a call of ``plan`` makes, with their memory booked.

    Raises
    ------
    OutOfMemoryError
        If they do not fit into the limit.
    """
    count = math.prod(plan.shape)
    made = []
    for dtype in plan.outputs:
        LEDGER.require(count * dtype.itemsize)
        try:
            made.append(np.empty(plan.shape, dtype))
        except MemoryError as error:
            raise as_out_of_memory(error) from None
        LEDGER.hold(made[-1])
    return tuple(made)


def run_plan(plan: Plan, inputs: Sequence[Any], outputs: Sequence[Array]) -> None:
    """Run the kernel of ``plan`` on these arguments. Raises what CuPy raises if one is on another device."""
    if DEVICES.count > 1:
        DEVICES.require_here(inputs, outputs)
    if plan.entry is None:
        return
    operands = [*inputs, *outputs]
    for position, dtype in plan.scalars:
        operands[position] = scalar_array(inputs[position], dtype)
    values = (ctypes.c_void_p * len(operands))(*[operand.ctypes.data for operand in operands])
    arguments = (ctypes.c_uint64 * 2)(ctypes.addressof(values), plan.layout.ctypes.data)
    start = ctypes.addressof(arguments)
    table = (ctypes.c_void_p * 2)(start, start + 8)
    plan.entry.launch((plan.grid, 1, 1), (plan.block, 1, 1), ctypes.addressof(table))
