"""Calls of views, copies and joins."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.conformance.infer_calls.draw import Array, Draw, template


@template("cupy.swapaxes", "cupy.ndarray.swapaxes", "cupy.moveaxis", "cupy.rollaxis")
def _two_axes(draw: Draw) -> Any:
    a = draw.array()
    return (a, draw.axis(a), draw.axis(a)), {}


@template("cupy.moveaxis")
def _moved_axes(draw: Draw) -> Any:
    a = draw.array()
    count = draw.random.randint(0, len(a.shape))
    axes = range(len(a.shape))
    return (a, tuple(draw.random.sample(axes, count)), tuple(draw.random.sample(axes, count))), {}


@template("cupy.expand_dims")
def _expanded(draw: Draw) -> Any:
    a = draw.array()
    axis = draw.axis(a) if draw.chance(0.5) else (0, draw.one((1, 2, -1)))
    return (a, axis), {}


@template("cupy.broadcast_to")
def _broadcast(draw: Draw) -> Any:
    target = draw.shape()
    return (draw.partner(Array(target)), target), {}


@template("cupy.broadcast_arrays", "cupy.atleast_1d", "cupy.atleast_2d", "cupy.atleast_3d")
def _several(draw: Draw) -> Any:
    a = draw.array()
    return tuple([a, draw.partner(a)][: draw.one((1, 2, 2))]), {}


@template("cupy.diagonal", "cupy.ndarray.diagonal")
def _diagonal(draw: Draw) -> Any:
    a = draw.array(2)
    return (a, draw.one((0, 0, 1, -1, 3)), *([] if draw.chance(0.5) else [draw.axis(a), draw.axis(a)])), {}


@template("cupy.flip", "cupy.squeeze", "cupy.ndarray.squeeze")
def _flip(draw: Draw) -> Any:
    a = draw.array()
    return (a, draw.axes(a)), {}


@template("cupy.rot90")
def _rotate(draw: Draw) -> Any:
    return (draw.array(1), draw.one((0, 1, 2, 3, -1))), {"axes": draw.one(((0, 1), (1, 0), (-1, -2), (0, 0), (0, 2)))}


@template("cupy.ndarray.view")
def _view(draw: Draw) -> Any:
    return (draw.array(), draw.dtype()), {}


@template("cupy.transpose", "cupy.ndarray.transpose")
def _transpose(draw: Draw) -> Any:
    a = draw.array()
    axes = list(range(len(a.shape)))
    draw.random.shuffle(axes)
    return (a, draw.one((None, tuple(axes), tuple(-1 - axis for axis in axes), (0, 0)))), {}


@template("cupy.ndarray.T", "cupy.matrix_transpose", "cupy.flipud", "cupy.fliplr")
def _turned(draw: Draw) -> Any:
    return (draw.array(),), {}


@template("cupy.reshape", "cupy.ndarray.reshape", "cupy.resize")
def _reshape(draw: Draw) -> Any:
    a = draw.array()
    size = int(np.prod(a.shape))
    factors = [one for one in range(1, size + 1) if size % one == 0] or [1]
    first = draw.one(factors)
    shape = draw.one(
        ((-1,), (first, -1), (first, size // max(first, 1)), (size,), (1, size, 1), a.shape[::-1], (7, -1))
    )
    return (a, shape), {}


@template("cupy.ravel", "cupy.ndarray.ravel", "cupy.ndarray.flatten", "cupy.copy", "cupy.ndarray.copy")
def _ordered(draw: Draw) -> Any:
    a = draw.array()
    return (a,), {"order": draw.order()}


@template("cupy.reshape")
def _ordered_reshape(draw: Draw) -> Any:
    return (draw.array(), (-1,)), {"order": draw.one("CFA")}


@template("cupy.array_split", "cupy.split")
def _split(draw: Draw) -> Any:
    a = draw.array(1)
    return (a, draw.one((1, 2, 3, [1], (1, 2), [2, 1], [-1], [])), draw.axis(a)), {}


@template("cupy.vsplit", "cupy.hsplit", "cupy.dsplit")
def _split_fixed(draw: Draw) -> Any:
    return (draw.array(), draw.one((1, 2, [1, 2]))), {}


@template("cupy.tile")
def _tile(draw: Draw) -> Any:
    return (draw.array(0, 3), draw.one((1, 2, (2, 1), (1, 1), (2, 3), (1, 1, 1, 1), (0,), (2, 1, 3)))), {}


@template("cupy.repeat", "cupy.ndarray.repeat")
def _repeat(draw: Draw) -> Any:
    a = draw.array()
    return (a, draw.one((0, 1, 2, 3, -1))), {} if draw.chance(0.4) else {"axis": draw.axis(a)}


@template("cupy.roll")
def _roll(draw: Draw) -> Any:
    a = draw.array()
    return (a, draw.one((0, 1, -2, (1, 2)))), {} if draw.chance(0.4) else {"axis": draw.axis(a)}


@template("cupy.pad")
def _pad(draw: Draw) -> Any:
    a = draw.array(1)
    width = draw.one((0, 1, 2, (1, 2), ((1, 2),), ((0, 1),) * len(a.shape)))
    return (a, width), {"mode": draw.one(("constant", "edge", "reflect", "symmetric", "wrap", "empty"))}


@template("cupy.concatenate", "cupy.stack", "cupy.hstack", "cupy.vstack", "cupy.dstack", "cupy.column_stack")
def _join(draw: Draw) -> Any:
    a = draw.array(0, 3)
    count = draw.one((1, 2, 2, 3))
    others = [draw.array(shape=a.shape if draw.chance(0.95) else draw.shape()) for _ in range(count)]
    if draw.chance(0.5):
        others = [one._replace(dtype=a.dtype) for one in others]
    return ([a, *others],), {}


@template("cupy.concatenate", "cupy.stack")
def _join_along(draw: Draw) -> Any:
    a = draw.array(1, 3)
    kwargs: dict[str, Any] = {"axis": draw.one((draw.axis(a), None))}
    if draw.chance(0.3):
        kwargs["dtype"] = draw.dtype()
    return ((a, draw.array(shape=a.shape)),), kwargs


@template("cupy.append")
def _append(draw: Draw) -> Any:
    a = draw.array(0, 3)
    if draw.chance(0.2):
        return (a, draw.one((True, 3, -1, 2.5, 1j, 2**40))), {}
    return (a, draw.array(shape=a.shape)), {"axis": draw.one((None, draw.axis(a)))}
