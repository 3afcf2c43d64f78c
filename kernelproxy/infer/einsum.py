"""The rule of einsum: CuPy's way of contracting one or two operands, followed step by step for its memory order."""

from __future__ import annotations

import re
from typing import Any

from kernelproxy.infer import reductions
from kernelproxy.infer.arguments import as_dtype
from kernelproxy.infer.outcome import CannotProve, refusal
from kernelproxy.infer.products import matmul
from kernelproxy.infer.promotion import result_type
from kernelproxy.infer.registry import rule
from kernelproxy.infer.shadow import Shadow, arrays, new, ufunc
from kernelproxy.layout import DType, strided

#: Plain subscripts: letters, no ellipsis.
_PLAIN = re.compile(r"[A-Za-z]*(,[A-Za-z]*)*(->[A-Za-z]*)?")
#: An operand and the label of each of its axes.
Labelled = tuple[Shadow, list[str]]


@rule("cupy.einsum")
def einsum(*operands: Any, dtype: Any = None, optimize: Any = False) -> Shadow:
    """As CuPy, for one or two operands with subscripts in a string."""
    if not operands or not isinstance(operands[0], str) or not 2 <= len(operands) <= 3:
        raise CannotProve("other than one or two operands after a string")
    subscripts = operands[0].replace(" ", "")
    if not _PLAIN.fullmatch(subscripts) or optimize not in (False, True, "greedy", "optimal"):
        raise CannotProve("subscripts with an ellipsis")
    given = arrays(operands[1:])
    inputs, _, output = subscripts.partition("->")
    labels = [list(part) for part in inputs.split(",")]
    if len(labels) != len(given) or any(len(one) != a.ndim for one, a in zip(labels, given, strict=False)):
        raise CannotProve("subscripts that do not fit the operands")
    extents = _extents(labels, given)
    wanted = _output(labels, output, "->" in subscripts)
    made = result_type(*[a.layout for a in given]) if dtype is None else as_dtype(dtype)
    return _contract([(a, one) for a, one in zip(given, labels, strict=True)], wanted, extents, made)


def _extents(labels: list[list[str]], given: list[Shadow]) -> dict[str, int]:
    extents: dict[str, int] = {}
    for place, (operand, named) in enumerate(zip(given, labels, strict=True)):
        for label, extent in zip(named, operand.shape, strict=True):
            known = extents.setdefault(label, extent)
            if known == 1:
                extents[label] = extent
            elif extent not in (1, known):
                words = (
                    f"Size of label '{label}' for operand {place} ({known}) does not match previous terms ({extent})."
                )
                raise refusal(ValueError, words)
    return extents


def _output(labels: list[list[str]], output: str, given: bool) -> list[str]:
    every = [label for one in labels for label in one]
    if not given:
        return [label for label in sorted(set(every)) if every.count(label) == 1]
    if any(label not in every for label in output) or len(set(output)) != len(output):
        raise CannotProve("an output that does not fit the operands")
    return list(output)


def _contract(operands: list[Labelled], output: list[str], extents: dict[str, int], dtype: DType) -> Shadow:
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
    if len(summed) == 2:
        summed = [_pair(summed[1], summed[0], output)]
    a, labels = summed[0]
    order = tuple([labels.index(label) for label in output if label in labels])
    return a.transpose(order).reshape(tuple([extents[label] for label in output]))


def _diagonal(a: Shadow, labels: list[str]) -> Labelled:
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


def _squeezed(a: Shadow, labels: list[str]) -> Labelled:
    axes = tuple([axis for axis, extent in enumerate(a.shape) if extent == 1])
    return (a.squeeze(axes), [label for axis, label in enumerate(labels) if axis not in axes]) if axes else (a, labels)


def _pair(first: Labelled, second: Labelled, output: list[str]) -> Labelled:
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


def _groups(labels: list[str], batch: set[str], summed: set[str]) -> tuple[list[int], list[int], list[int]]:
    """Return the axes of the three kinds, each in the order of their labels."""

    def axes(wanted: set[str]) -> list[int]:
        return [axis for _, axis in sorted((label, axis) for axis, label in enumerate(labels) if label in wanted)]

    return axes(batch), axes(summed), axes(set(labels) - batch - summed)


def _spread(a: Shadow, labels: list[str], wanted: list[str]) -> Shadow:
    """Return ``a`` with its axes in the order of ``wanted``, and axes of one where it has none."""
    every = labels + [label for label in wanted if label not in labels]
    shape = a.shape + (1,) * (len(every) - len(labels))
    return a.reshape(shape).transpose(tuple([every.index(label) for label in wanted]))


def _flattened(a: Shadow, groups: list[list[int]]) -> Shadow:
    order = tuple([axis for group in groups for axis in group])
    shape = []
    for group in groups:
        size = 1
        for axis in group:
            size *= a.shape[axis]
        shape.append(size)
    return a.transpose(order).reshape(tuple(shape))
