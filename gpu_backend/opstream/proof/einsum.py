"""The rule of einsum: CuPy's way of contracting operands, followed step by step for its memory order."""

from __future__ import annotations

import re

from gpu_backend.opstream.layout import DType, strided
from gpu_backend.opstream.proof import reductions
from gpu_backend.opstream.proof.arguments import as_dtype
from gpu_backend.opstream.proof.outcome import CannotProve, refusal
from gpu_backend.opstream.proof.products import matmul
from gpu_backend.opstream.proof.promotion import result_type
from gpu_backend.opstream.proof.registry import rule
from gpu_backend.opstream.proof.shadow import Array, arrays, new, ufunc
from gpu_backend.opstream.proof.values import is_items

#: Letters, and at most one "@", an ellipsis, in each part.
_PART = re.compile(r"[A-Za-z]*@?[A-Za-z]*")
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
#: As in CuPy the number of a letter, or for the axes of an ellipsis the place before the last, below zero.
Label = int
#: An operand and the label of each of its axes.
Labelled = tuple[Array, list[Label]]


@rule("cupy.einsum")
def einsum(*operands: object, dtype: object = None, optimize: object = False) -> Array:
    """As CuPy. Of more than two operands in their order, the last first."""
    inputs, output, given = _parts(operands)
    if optimize is not False and (len(given) > 2 or optimize not in (True, "greedy", "optimal")):
        raise CannotProve("an order of contractions that is looked for")
    if len(inputs) != len(given) or not all(_PART.fullmatch(part) for part in [*inputs, output or ""]):
        raise CannotProve("subscripts that are none")
    labels = [_labels(part, a.ndim - len(part.replace("@", ""))) for part, a in zip(inputs, given, strict=True)]
    if any(len(one) != a.ndim for one, a in zip(labels, given, strict=True)):
        raise CannotProve("subscripts that do not fit the operands")
    extents = _extents(labels, given)
    wanted = _output(labels, output, extents)
    made = result_type(*[a.layout for a in given]) if dtype is None else as_dtype(dtype)
    return _contract([(a, one) for a, one in zip(given, labels, strict=True)], wanted, extents, made)


def _parts(operands: tuple[object, ...]) -> tuple[list[str], str | None, list[Array]]:
    """Return the subscripts of each operand and of the result, "@" for an ellipsis, and the operands."""
    if len(operands) < 2:
        raise CannotProve("no operands")
    if isinstance(operands[0], str):
        inputs, arrow, output = operands[0].replace("...", "@").replace(" ", "").partition("->")
        return inputs.split(","), output if arrow else None, arrays(list(operands[1:]))
    pairs = operands[: len(operands) // 2 * 2]
    named = operands[-1] if len(operands) % 2 else None
    return [_letters(one) for one in pairs[1::2]], None if named is None else _letters(named), arrays(list(pairs[::2]))


def _letters(numbers: object) -> str:
    if not is_items(numbers):
        raise CannotProve("subscripts of another kind")
    return "".join(map(_letter, numbers))


def _letter(number: object) -> str:
    if type(number) is int and 0 <= number < len(_LETTERS):
        return _LETTERS[number]
    if number is Ellipsis:
        return "@"
    raise CannotProve("subscripts of another kind")


def _labels(part: str, hidden: int) -> list[Label]:
    """Return the labels of a part whose ellipsis stands for ``hidden`` axes."""
    if "@" not in part:
        return [ord(letter) for letter in part]
    if hidden < 0:
        raise CannotProve("subscripts that do not fit the operands")
    left, _, right = part.partition("@")
    return [*map(ord, left), *range(-hidden, 0), *map(ord, right)]


def _extents(labels: list[list[Label]], given: list[Array]) -> dict[Label, int]:
    extents: dict[Label, int] = {}
    for place, (operand, named) in enumerate(zip(given, labels, strict=True)):
        for label, extent in zip(named, operand.shape, strict=True):
            known = extents.setdefault(label, extent)
            if known == 1:
                extents[label] = extent
            elif extent not in (1, known):
                name = chr(label) if label >= 0 else f"...[{label}]"
                words = (
                    f"Size of label '{name}' for operand {place} ({known}) does not match previous terms ({extent})."
                )
                raise refusal(ValueError, words)
    return extents


def _output(labels: list[list[Label]], output: str | None, extents: dict[Label, int]) -> list[Label]:
    every = [label for one in labels for label in one]
    if output is None:
        return [label for label in sorted(set(every)) if label < 0 or every.count(label) == 1]
    if "@" not in output and -1 in extents:
        words = (
            "output has more dimensions than subscripts given in einstein sum, but no '...' ellipsis provided to "
            "broadcast the extra dimensions."
        )
        raise refusal(ValueError, words)
    wanted = _labels(output, sum(label < 0 for label in extents))
    if any(label not in every for label in wanted) or len(set(wanted)) != len(wanted):
        raise CannotProve("an output that does not fit the operands")
    return wanted


def _contract(operands: list[Labelled], output: list[Label], extents: dict[Label, int], dtype: DType) -> Array:
    operands = [_diagonal(*one) for one in operands]
    if len(operands) > 1:
        if any(a.size == 0 for a, _ in operands):
            return new(tuple([extents[label] for label in output]), dtype)
        operands = [_squeezed(*one) for one in operands]
    summed = []
    is_view = len(operands) == 1
    for place, (a, labels) in enumerate(operands):
        others = set(output).union(*[set(one) for other, (_, one) in enumerate(operands) if other != place])
        axes = tuple([axis for axis, label in enumerate(labels) if label not in others])
        if axes:
            is_view = False
            labels = [label for label in labels if label in others]
            a = reductions.sum_(a, axes, dtype)
        summed.append((a, labels))
    if not is_view:
        summed = [(a.astype(dtype, copy=False), labels) for a, labels in summed]
    while len(summed) > 1:
        second, first, *rest = reversed(summed)
        rest.reverse()
        kept = output + [label for _, labels in rest for label in labels]
        summed = [*rest, _pair(second, first, kept)]
    a, labels = summed[0]
    order = tuple([labels.index(label) for label in output if label in labels])
    return a.transpose(order).reshape(tuple([extents[label] for label in output]))


def _diagonal(a: Array, labels: list[Label]) -> Labelled:
    """Take the diagonal of axes with the same label."""
    if len(set(labels)) == len(labels):
        return a, labels
    kept = list(dict.fromkeys(labels))
    shape, strides = [], []
    for label in kept:
        axes = [axis for axis, one in enumerate(labels) if one == label]
        if len({a.shape[axis] for axis in axes}) > 1:
            raise CannotProve("a diagonal of axes of several lengths")
        shape.append(a.shape[axes[0]])
        strides.append(sum(a.strides[axis] for axis in axes))
    return a.window((0, strided(tuple(shape), tuple(strides), a.dtype))), kept


def _squeezed(a: Array, labels: list[Label]) -> Labelled:
    axes = tuple([axis for axis, extent in enumerate(a.shape) if extent == 1])
    return (a.squeeze(axes), [label for axis, label in enumerate(labels) if axis not in axes]) if axes else (a, labels)


def _pair(first: Labelled, second: Labelled, output: list[Label]) -> Labelled:
    """Contract two operands: by broadcasting if they share no summed label, else by a product of matrices."""
    (a, a_labels), (b, b_labels) = first, second
    if not a_labels or not b_labels:
        return ufunc("multiply", a, b), a_labels + b_labels
    shared = set(a_labels) & set(b_labels)
    batch, summed = shared & set(output), shared - set(output)
    a_batch, a_summed, a_rest = _groups(a_labels, batch, summed)
    b_batch, b_summed, b_rest = _groups(b_labels, batch, summed)
    made = [a_labels[axis] for axis in a_batch + a_rest] + [b_labels[axis] for axis in b_rest]
    if not summed:
        made = output if len(made) == len(output) else made
        return ufunc("multiply", _spread(a, a_labels, made), _spread(b, b_labels, made)), made
    left = _flattened(a, [a_batch, a_rest, a_summed])
    right = _flattened(b, [b_batch, b_summed, b_rest])
    shape = [a.shape[axis] for axis in a_batch + a_rest] + [b.shape[axis] for axis in b_rest]
    return matmul(left, right).reshape(tuple(shape)), made


def _groups(labels: list[Label], batch: set[Label], summed: set[Label]) -> tuple[list[int], list[int], list[int]]:
    """Return the axes of the three kinds, each in the order of their labels."""

    def axes(wanted: set[Label]) -> list[int]:
        return [axis for _, axis in sorted((label, axis) for axis, label in enumerate(labels) if label in wanted)]

    return axes(batch), axes(summed), axes(set(labels) - batch - summed)


def _spread(a: Array, labels: list[Label], wanted: list[Label]) -> Array:
    """Return ``a`` with its axes in the order of ``wanted``, and axes of one where it has none."""
    every = labels + [label for label in wanted if label not in labels]
    shape = a.shape + (1,) * (len(every) - len(labels))
    return a.reshape(shape).transpose(tuple([every.index(label) for label in wanted]))


def _flattened(a: Array, groups: list[list[int]]) -> Array:
    order = tuple([axis for group in groups for axis in group])
    shape = []
    for group in groups:
        size = 1
        for axis in group:
            size *= a.shape[axis]
        shape.append(size)
    return a.transpose(order).reshape(tuple(shape))
