"""Results of user kernels, from their parameter lists."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple, TypeAlias

import numpy as np

from gpu_backend.opstream.layout import DType, Layout, Shape, contiguous
from gpu_backend.opstream.proof.arguments import as_axes, as_bool, as_dtype, as_text, broadcast, native
from gpu_backend.opstream.proof.outcome import ArrayProof, CannotProve, Proof, Returned, proves, refusal
from gpu_backend.opstream.proof.reduction import reduced_shape
from gpu_backend.opstream.proof.registry import remembered
from gpu_backend.opstream.proof.scalars import bounds, check_operand
from gpu_backend.opstream.proof.values import Operand, is_scalar

#: CuPy's 64 bits for a Python int that no parameter has a dtype for yet.
_LOWEST_INT, _HIGHEST_INT = -(1 << 63), (1 << 64) - 1


class Parameter(NamedTuple):
    """One parameter of a kernel: ``raw T x`` is ("x", "T", None, True), ``float32 y`` is ("y", "", float32, False)."""

    name: str
    letter: str
    dtype: DType | None
    raw: bool


class Kernel(NamedTuple):
    """What matters of a kernel's definition.

    Attributes
    ----------
    nothing, always_tuple
        What it was made with as ``no_return`` and ``return_tuple``.
    identity
        Of a reduction, "" if it has none.
    """

    name: str
    inputs: tuple[Parameter, ...]
    outputs: tuple[Parameter, ...]
    nothing: bool = False
    always_tuple: bool = False
    identity: str = ""


#: The dtype of a launch's input, None for a scalar, and how the errors of the kernel's class name it.
_Given: TypeAlias = tuple[DType | None, object]
#: What a kernel was made with, by place and by name, and what it is launched with.
_Launch: TypeAlias = tuple[tuple[object, ...], tuple[tuple[str, object], ...], tuple[object, ...]]


def result(
    qualname: str,
    definition: tuple[tuple[object, ...], dict[str, object]],
    args: tuple[object, ...],
    kwargs: dict[str, object],
) -> Proof:
    """Return what the launch ``kernel(*args, **kwargs)`` gives if its source compiles.

    Parameters
    ----------
    qualname
        "cupy.ElementwiseKernel" or "cupy.ReductionKernel".
    definition
        The positional and the keyword arguments that the kernel was made with.
    args, kwargs
        As of `gpu_backend.opstream.proof.prove`. In the proof, the kernel is argument 0, as ``self`` is of any method.

    Raises
    ------
    Exception
        What CuPy raises, if failure is proved.
    """
    made, named = definition
    return remembered(_result, qualname, (made, tuple(named.items()), args), kwargs)


@proves
def _result(qualname: str, launch: _Launch, kwargs: dict[str, object]) -> Proof:
    made, named, args = launch
    if qualname == "cupy.ElementwiseKernel":
        return _elementwise(_elementwise_kernel(*made, **dict(named)), args, **kwargs)
    return _reduction(_reduction_kernel(*made, **dict(named)), args, **kwargs)


def _elementwise_kernel(
    in_params: object, out_params: object, operation: object, name: object = "kernel", reduce_dims: object = True,
    preamble: object = "", no_return: object = False, return_tuple: object = False, **options: object,
) -> Kernel:  # fmt: skip
    inputs, outputs = parameters_of(as_text(in_params)), parameters_of(as_text(out_params))
    return Kernel(as_text(name), inputs, outputs, as_bool(no_return), as_bool(return_tuple))


def _reduction_kernel(
    in_params: object, out_params: object, map_expr: object, reduce_expr: object, post_map_expr: object,
    identity: object, name: object = "reduce_kernel", *options: object, **more_options: object,
) -> Kernel:  # fmt: skip
    inputs, outputs = parameters_of(as_text(in_params)), parameters_of(as_text(out_params))
    return Kernel(as_text(name), inputs, outputs, identity="" if identity is None else str(identity))


@cache
def parameters_of(text: str) -> tuple[Parameter, ...]:
    """Read a parameter list such as ``"T x, raw float32 table"``.

    Raises
    ------
    CannotProve
        If it is malformed, or names a dtype that is unknown here.
    """
    if not text:
        return ()
    return tuple([_parameter(part.split()) for part in text.strip().split(",")])


def _parameter(words: list[str]) -> Parameter:
    if len(words) < 2 or not {"raw", "_non_const"}.issuperset(words[:-2]):
        raise CannotProve("a malformed parameter list")
    kind, name = words[-2:]
    if len(kind) == 1:
        return Parameter(name, kind, None, "raw" in words[:-2])
    return Parameter(name, "", as_dtype(kind), "raw" in words[:-2])


def _elementwise(
    kernel: Kernel, args: Sequence[object], size: object = -1, stream: object = None, block_size: object = 128
) -> Proof:
    if type(size) is not int or size < -1 or type(block_size) is not int or not 0 < block_size <= 1024:
        raise CannotProve("an unusual launch")
    inputs, outputs = _check_number(kernel, args, f"{kernel.name!r}. ", _numbers(kernel, args))
    arrays = _looped(kernel.inputs, inputs) + _looped(kernel.outputs, outputs)
    if size != -1 and any(array is not None for array in arrays):
        raise refusal(ValueError, "Specified 'size' can be used only if all of the ndarray are 'raw'.")
    shape = (size,) if size != -1 else _loop(arrays)
    types = _types(kernel, [_given(one) for one in inputs], [_given(one) for one in outputs])
    results = _results(kernel, outputs, types, shape, sized=size != -1)
    if 0 not in shape:
        _check_scalars(kernel.inputs, inputs, types)
    if kernel.nothing:
        return None
    if len(results) == 1 and not kernel.always_tuple:
        return results[0]
    if not results:
        raise CannotProve("a kernel that writes into its inputs only")
    return tuple(results)


def _reduction(
    kernel: Kernel,
    args: Sequence[object],
    out: object = None,
    axis: object = None,
    keepdims: object = False,
    stream: object = None,
) -> Proof:
    inputs, outputs = _check_number(kernel, args, kernel.name, "")
    if out is not None:
        if len(kernel.outputs) != 1 or outputs:
            raise CannotProve("an output given twice, or one of several")
        if not isinstance(out, Layout):
            raise CannotProve("an output that is no array")
        outputs = [out]
    shape = _loop(_looped(kernel.inputs, inputs))
    types = _types(kernel, [_given_type(one) for one in inputs], [_given_type(one) for one in outputs])
    reduced = reduced_shape(shape, as_axes(axis, len(shape)), as_bool(keepdims))
    results = _results(kernel, outputs, types, reduced)
    if any(parameter.raw for parameter in kernel.inputs + kernel.outputs):
        raise CannotProve("raw parameters of a reduction")
    if 0 not in reduced:
        if 0 in shape and not kernel.identity:
            words = f"zero-size array to reduction operation {kernel.name} which has no identity"
            raise refusal(ValueError, words)
        _check_scalars(kernel.inputs, inputs, types)
    return Returned("out") if out is not None else results[0]


def _numbers(kernel: Kernel, args: Sequence[object]) -> str:
    least = len(kernel.inputs)
    return f"It must be either {least} or {least + len(kernel.outputs)} (with outputs), but given {len(args)}."


def _check_number(kernel: Kernel, args: Sequence[object], of: str, words: str) -> tuple[list[Operand], list[Layout]]:
    """Return the inputs and the outputs given."""
    least = len(kernel.inputs)
    if len(args) not in (least, least + len(kernel.outputs)):
        raise refusal(TypeError, f"Wrong number of arguments for {of}{words}")
    given = [one for one in args if isinstance(one, Layout) or is_scalar(one)]
    if len(given) < len(args):
        raise CannotProve("arguments that are neither arrays nor scalars")
    outputs = [one for one in given[least:] if isinstance(one, Layout)]
    if len(outputs) < len(given) - least:
        raise CannotProve("outputs that are not arrays")
    return given[:least], outputs


def _looped(parameters: tuple[Parameter, ...], arguments: Sequence[Operand]) -> list[Shape | None]:
    """Return the shapes that the loop runs over, None for scalars and raw arrays."""
    shapes: list[Shape | None] = []
    for parameter, argument in zip(parameters, arguments, strict=False):
        if parameter.raw and not isinstance(argument, Layout):
            raise CannotProve("a scalar as a raw parameter")
        shapes.append(argument.shape if isinstance(argument, Layout) and not parameter.raw else None)
    return shapes


def _loop(shapes: list[Shape | None]) -> Shape:
    if all(shape is None for shape in shapes):
        raise refusal(ValueError, "Loop size is undecided.")
    extents = [() if shape is None else shape for shape in shapes]
    return broadcast(extents, extents)


def _given(argument: Operand) -> _Given:
    dtype = native(argument.dtype) if isinstance(argument, Layout) else None
    return dtype, dtype


def _given_type(argument: Operand) -> _Given:
    dtype = native(argument.dtype) if isinstance(argument, Layout) else None
    return dtype, None if dtype is None else dtype.type


def _types(kernel: Kernel, inputs: list[_Given], outputs: list[_Given]) -> dict[Parameter, DType]:
    """Return the dtype of each parameter: outputs that are given say what a letter is, then inputs do."""
    letters: dict[str, _Given] = {}
    if outputs:
        _match(kernel.outputs, outputs, letters)
    _match(kernel.inputs, inputs, letters)
    types = {}
    for parameter in kernel.inputs + kernel.outputs:
        dtype = parameter.dtype
        if dtype is None:
            if parameter.letter not in letters:
                raise refusal(KeyError, parameter.letter)
            dtype = letters[parameter.letter][0]
        assert dtype is not None
        types[parameter] = dtype
    return types


def _match(parameters: tuple[Parameter, ...], given: list[_Given], letters: dict[str, _Given]) -> None:
    for parameter, (dtype, named) in zip(parameters, given, strict=True):
        if dtype is None:
            continue
        if parameter.dtype is not None:
            if dtype != parameter.dtype:
                raise refusal(TypeError, f"Type is mismatched. {parameter.name} {named} {parameter.dtype}")
        elif parameter.letter in letters:
            other, its_name = letters[parameter.letter]
            if other != dtype:
                words = f"Type is mismatched. {parameter.name} {named} {its_name} {parameter.letter}"
                raise refusal(TypeError, words)
        else:
            letters[parameter.letter] = (dtype, named)


def _results(
    kernel: Kernel, outputs: Sequence[Layout], types: dict[Parameter, DType], shape: Shape, *, sized: bool = False
) -> list[ArrayProof]:
    if not outputs:
        if not sized and any(parameter.raw for parameter in kernel.outputs):
            raise refusal(ValueError, "Output array size is Undecided")
        return [contiguous(shape, types[parameter]) for parameter in kernel.outputs]
    for parameter, given in zip(kernel.outputs, outputs, strict=True):
        if not parameter.raw and given.shape != shape:
            raise refusal(ValueError, "Out shape is mismatched")
    return [Returned(1 + len(kernel.inputs) + place) for place in range(len(outputs))]


def _check_scalars(
    parameters: tuple[Parameter, ...], arguments: Sequence[Operand], types: dict[Parameter, DType]
) -> None:
    for parameter, argument in zip(parameters, arguments, strict=True):
        if not isinstance(argument, Layout):
            _check_scalar(argument, types[parameter])


def _check_scalar(value: object, dtype: DType) -> None:
    """Check what CuPy does when it stores a scalar as an element of ``dtype``; a NumPy scalar may be narrowed."""
    plain = value
    if isinstance(value, np.generic):
        native(value.dtype)
        plain = value.item()
        if type(plain) is int and dtype.kind in "iu" and not bounds(dtype)[0] <= plain <= bounds(dtype)[1]:
            raise CannotProve("a NumPy integer that does not fit")
    elif type(value) not in (bool, int, float, complex):
        raise CannotProve(f"a scalar of {type(value).__name__}")
    if type(plain) is int and not _LOWEST_INT <= plain <= _HIGHEST_INT:
        raise refusal(OverflowError, "Python int too large to convert to C long")
    check_operand(plain, dtype)
