"""``ReductionKernel``: maps elements, joins them along axes, and maps the results.

Sources:
    signature, attributes, rules and error messages, and the number of partial results on which rounding depends, are
    those of CuPy 14.2 (https://docs.cupy.dev/en/stable/user_guide/kernel.html#reduction-kernels).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gpu_backend.devices.cpu.kernels import loops
from gpu_backend.devices.cpu.kernels.generated import build_generated
from gpu_backend.devices.cpu.kernels.parameters import (
    DType,
    ParameterInfo,
    Types,
    check_scalar,
    decide_types,
)
from gpu_backend.devices.cpu.kernels.parametrised import ParametrisedKernel
from gpu_backend.devices.cpu.kernels.plans import (
    Array,
    Plan,
    argument_kind,
    broadcast_shape,
    check_outputs,
    make_outputs,
    run_plan,
    stand_in,
)
from gpu_backend.devices.cpu.kernels.reduction_code import (
    ReductionBody,
    ReductionOperand,
    ReductionSpec,
    reduction_code,
)

_BLOCK = 512  # threads of a block in CuPy's kernel
_WIDEST = 0x7FFFFFFF


class Axes(NamedTuple):
    """Which axes of the broadcast inputs are reduced and which are kept, both in the order of the loops."""

    reduced: tuple[int, ...]
    kept: tuple[int, ...]


class ReductionKernel(ParametrisedKernel):
    """A reduction kernel with broadcasting.

    Parameters
    ----------
    in_params, out_params
        Comma-separated parameters; see :mod:`.parameters`.
    map_expr
        C++ expression of the inputs' elements.
    reduce_expr
        C++ expression that joins ``a`` and ``b``.
    post_map_expr
        C++ expression that writes the outputs from the joined ``a``.
    identity
        C++ expression that joins with anything to that; None for a reduction that has none.
    name
        A name for people.
    reduce_type
        C++ type of ``a`` and ``b``; by default that of the first output.
    reduce_dims
        Accepted and without meaning: axes are joined wherever that changes nothing.
    preamble
        C++ text before the kernel.
    options
        Compile options of NVRTC.
    """

    def __init__(
        self,
        in_params: str,
        out_params: str,
        map_expr: str,
        reduce_expr: str,
        post_map_expr: str,
        identity: object,
        name: str = "reduce_kernel",
        reduce_type: str | None = None,
        reduce_dims: bool = True,
        preamble: str = "",
        options: tuple[str, ...] = (),
    ) -> None:
        super().__init__(in_params, out_params, name)
        self.params = None  # as CuPy's, which has a place for them and leaves it empty
        self.identity = "" if identity is None else str(identity)
        self.map_expr = map_expr
        self.reduce_expr = reduce_expr
        self.post_map_expr = post_map_expr
        self.reduce_type = reduce_type if reduce_type is not None else self.out_params[0].ctype
        self.reduce_dims = reduce_dims
        self.preamble = preamble
        self.options = options

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the kernel.

        Parameters
        ----------
        args
            Inputs, or inputs and outputs: arrays, and scalars for inputs.
        out
            The output, instead of among ``args``.
        axis
            Axis or axes to reduce; None for all.
        keepdims
            Keep reduced axes with length 1.

        Returns
        -------
        The first output array.

        Raises
        ------
        TypeError, ValueError, numpy.exceptions.AxisError, NotImplementedError
            As in CuPy, if the arguments do not fit the parameters or one another.
        CompileException
            If the code does not compile for these types; at the first call with them.
        """
        out = kwargs.pop("out", None)
        axis = kwargs.pop("axis", None)
        keepdims = bool(kwargs.pop("keepdims", False))
        kwargs.pop("stream", None)
        if kwargs:
            raise TypeError(f"Wrong arguments {kwargs}")
        if len(args) not in (self.nin, self.nargs):
            raise TypeError(f"Wrong number of arguments for {self.name}")
        inputs, given = args[: self.nin], args[self.nin :]
        if out is not None:
            if self.nout != 1:
                raise NotImplementedError("'out' needs a kernel with one output")
            if given:
                raise ValueError("cannot specify 'out' as both a positional and keyword argument")
            given = (out,)
        axis = tuple(axis) if isinstance(axis, list | np.ndarray) else axis
        key = (axis, keepdims, *[argument_kind(arg) for arg in (*inputs, *given)])
        plan = self._plans.get(key, lambda: self._plan(inputs, given, axis, keepdims))
        outputs = given or make_outputs(plan)
        run_plan(plan, inputs, outputs)
        return outputs[0]

    def _plan(self, inputs: Sequence[object], given: Sequence[Any], axis: object, keepdims: bool) -> Plan:
        for arg in (*inputs, *given):
            if not isinstance(arg, np.ndarray):
                check_scalar(arg)
        shape = broadcast_shape(inputs, self.in_params, -1)
        in_dtypes = [arg.dtype if isinstance(arg, np.ndarray) else None for arg in inputs]
        out_dtypes = [arg.dtype if isinstance(arg, np.ndarray) else None for arg in given]
        types = decide_types(self.in_params, self.out_params, in_dtypes, out_dtypes)
        axes = loop_axes(shape, axis, inputs)
        out_shape = _out_shape(shape, axes, keepdims)
        check_outputs(given, self.out_params, out_shape, False)
        scalars = tuple((n, types.inputs[n]) for n, dtype in enumerate(in_dtypes) if dtype is None)
        made = () if given else types.outputs
        outputs = given or [stand_in(out_shape, dtype) for dtype in types.outputs]
        if outputs[0].size == 0:
            return Plan(None, np.empty(0, np.int64), scalars, out_shape, made, 0, 0)
        if self.identity == "" and 0 in shape:
            raise ValueError(f"zero-size array to reduction operation {self.name} which has no identity")
        if axes.reduced + axes.kept != tuple(range(len(shape))) and any(param.raw for param in self.in_params):
            raise NotImplementedError("Illegal conditions")
        spec, layout = _Layout(self, inputs, outputs, types, shape, axes).result()
        code = reduction_code(spec)
        arrays = [a for a in (*inputs, *outputs) if isinstance(a, np.ndarray)]
        self._cached_codes.setdefault(tuple(a.dtype.char for a in arrays), code)
        entry = build_generated(code, self.name, tuple(self.options))
        return Plan(entry, layout, scalars, out_shape, made, 1, 1)


def loop_axes(shape: tuple[int, ...], axis: Any, inputs: Sequence[object]) -> Axes:
    """Return the axes of a reduction.

    Raises
    ------
    numpy.exceptions.AxisError
        If an axis is out of range.
    ValueError
        If an axis is named twice.
    """
    ndim = len(shape)
    named = tuple(range(ndim)) if axis is None else np.lib.array_utils.normalize_axis_tuple(axis, ndim)
    reduced = tuple(sorted(named))
    kept = tuple(a for a in range(ndim) if a not in reduced)
    only = inputs[0] if len(inputs) == 1 else None
    if isinstance(only, np.ndarray) and len(kept) <= 1 and not only.flags.c_contiguous:
        # One input in any order of memory: along its memory. This is CuPy's own rule; rounding depends on it.
        reduced = tuple(sorted(reduced, key=lambda a: -abs(only.strides[a])))
    return Axes(reduced, kept)


def _out_shape(shape: tuple[int, ...], axes: Axes, keepdims: bool) -> tuple[int, ...]:
    if keepdims:
        return tuple(1 if a in axes.reduced else length for a, length in enumerate(shape))
    return tuple(shape[a] for a in sorted(axes.kept))


class _Layout:
    """Works out the specification and the layout numbers of one kind of call."""

    def __init__(
        self,
        kernel: ReductionKernel,
        inputs: Sequence[object],
        outputs: Sequence[Array],
        types: Types,
        shape: tuple[int, ...],
        axes: Axes,
    ) -> None:
        self.kernel = kernel
        self.inputs = inputs
        self.outputs = outputs
        self.types = types
        self.shape = shape
        self.axes = axes
        self.out_size = outputs[0].size if not kernel.out_params[0].raw else _product(shape[a] for a in axes.kept)
        self.length = _product(shape[a] for a in axes.reduced)

    def result(self) -> tuple[ReductionSpec, Array]:
        kernel = self.kernel
        walked = [
            np.broadcast_to(arg, self.shape)
            for arg, param in zip(self.inputs, kernel.in_params, strict=True)
            if isinstance(arg, np.ndarray) and not param.raw
        ]
        reduced = self._nest(walked, self.axes.reduced)
        kept = self._nest(walked, self.axes.kept)
        written = [
            arg for arg, param in zip(self.outputs, kernel.out_params, strict=True) if not param.raw
        ]  # fmt: skip
        out = loops.joined(written[0].shape if written else (self.out_size,), [arg.strides for arg in written])
        lanes, stride = block_shape(self.length, self.out_size, self._contiguous_outputs(walked))
        tile = 1 if stride == 1 else max(stride, min(256, 8192 // lanes))
        in_shape = tuple(self.shape[a] for a in (*self.axes.reduced, *self.axes.kept))
        out_shape = tuple(self.shape[a] for a in self.axes.kept)
        body = ReductionBody(
            kernel.map_expr, kernel.reduce_expr, kernel.post_map_expr, kernel.identity, str(kernel.reduce_type),
            kernel.preamble,
        )  # fmt: skip
        sizes = [array.itemsize for array in walked]
        steps = iter(zip(reduced.steps(sizes), kept.steps(sizes), strict=True))
        raw: list[int] = []
        ins = self._operands(self.inputs, kernel.in_params, self.types.inputs, steps, raw)
        anywhere = iter([("any", "any")] * len(self.outputs))
        outs = self._operands(self.outputs, kernel.out_params, self.types.outputs, anywhere, raw)
        spec = ReductionSpec(
            body, self.types.placeholders, ins, outs, len(reduced.shape), len(kept.shape), len(out.shape),
            len(in_shape), len(out_shape), tile == 1, self.length > _WIDEST,
        )  # fmt: skip
        head = [self.out_size, self.length, lanes, tile, *in_shape, *out_shape]
        return spec, np.array([*head, *reduced.numbers, *kept.numbers, *out.numbers, *raw], np.int64)

    def _nest(self, walked: Sequence[Array], axes: tuple[int, ...]) -> loops.LoopNest:
        shape = [self.shape[a] for a in axes]
        if 0 in shape:  # nothing is reduced: the identity alone
            return loops.LoopNest((1,), tuple((0,) for _ in walked))
        return loops.joined(shape, [[array.strides[a] for a in axes] for array in walked])

    def _operands(
        self,
        args: Sequence[object],
        params: Sequence[ParameterInfo],
        dtypes: Sequence[DType],
        steps: Any,
        raw: list[int],
    ) -> tuple[ReductionOperand, ...]:
        operands = []
        for arg, param, dtype in zip(args, params, dtypes, strict=True):
            if not isinstance(arg, np.ndarray):
                operands.append(ReductionOperand(param, dtype))
            elif param.raw:
                operands.append(ReductionOperand(param, dtype, None, arg.ndim, arg.flags.c_contiguous))
                raw += [*arg.shape, *arg.strides]
            else:
                operands.append(ReductionOperand(param, dtype, next(steps)))
        return tuple(operands)

    def _contiguous_outputs(self, walked: Sequence[Array]) -> int:
        """Return how many neighbouring outputs read neighbouring elements of some input."""
        most = 1
        for array in walked:
            size = 1
            for axis in reversed(self.axes.kept):
                if array.strides[axis] != size * array.itemsize:
                    break
                size *= self.shape[axis]
            most = max(most, size)
        return most


def block_shape(length: int, outputs: int, contiguous: int) -> tuple[int, int]:
    """Return how a block of CuPy's kernel divides its 512 threads: partial results of an output, outputs of a block."""
    stride = max(min(contiguous, 32), _BLOCK // max(1, length * outputs // outputs))
    stride = 1 << (stride // 2).bit_length()
    return _BLOCK // stride, stride


def _product(numbers: Any) -> int:
    return int(np.prod([*numbers], dtype=np.int64))
