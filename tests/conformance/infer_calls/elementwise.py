"""Calls of functions that work element by element, and operators."""

from __future__ import annotations

from typing import Any

from gpu_backend.opstream import surface
from tests.conformance.infer_calls.draw import ALL, Array, Draw, template


@template("cupy.allclose", "cupy.isclose", "cupy.array_equal")
def _comparisons(draw: Draw) -> Any:
    a = draw.array()
    return (a, draw.partner(a)), {}


@template("cupy.where")
def _where(draw: Draw) -> Any:
    a = draw.array()
    x = draw.scalar() if draw.chance(0.3) else draw.partner(a)
    return (draw.partner(a, "?" if draw.chance(0.6) else ALL), a, x), {}


@template("cupy.clip", "cupy.ndarray.clip")
def _clip(draw: Draw) -> Any:
    a = draw.array()
    bounds = [draw.one((None, draw.scalar(), 0, 1.0, draw.partner(a))) for _ in range(2)]
    return (a, *bounds), {}


@template("cupy.around", "cupy.ndarray.round")
def _round(draw: Draw) -> Any:
    return (draw.array(), draw.one((0, 1, 2, -1, -2))), {}


@template("cupy.angle", "cupy.nan_to_num", "cupy.real", "cupy.imag", "cupy.ndarray.conj", "cupy.isreal",
          "cupy.isneginf", "cupy.ndarray.__neg__", "cupy.ndarray.__invert__", "cupy.ndarray.__abs__",
          "cupy.ndarray.__pos__", "cupy.ndarray.__copy__", "cupy.diagflat")  # fmt: skip
def _unary(draw: Draw) -> Any:
    return (draw.array(),), {}


@template("cupy.ndarray.__pow__", "cupy.ndarray.__rpow__")
def _power(draw: Draw) -> Any:
    return (draw.array(), draw.one((2, 2.0, 0.5, -1.0, 3, -1, 1.5, 2j, True))), {}


@template("cupy.ndarray.__eq__", "cupy.ndarray.__ne__")
def _equality(draw: Draw) -> Any:
    a = draw.array()
    return (a, draw.one((None, draw.partner(a), draw.scalar()))), {}


@template("cupy.ndarray.__iadd__", "cupy.ndarray.__imul__", "cupy.ndarray.__itruediv__", "cupy.ndarray.__iand__",
          "cupy.ndarray.__ipow__")  # fmt: skip
def _inplace(draw: Draw) -> Any:
    a = draw.array()
    return (a, draw.scalar() if draw.chance(0.4) else draw.partner(a)), {}


@template("cupy.ndarray.__radd__", "cupy.ndarray.__rsub__", "cupy.ndarray.__rfloordiv__", "cupy.ndarray.__lt__")
def _reflected(draw: Draw) -> Any:
    return (draw.array(), draw.scalar()), {}


@template("cupy.array_equiv")
def _equivalence(draw: Draw) -> Any:
    a = draw.array()
    return (a, draw.partner(a)), {}


@template("cupy.select")
def _select(draw: Draw) -> Any:
    shape = draw.shape(1, 3)
    count = draw.one((1, 2, 3))
    conditions = [draw.array(dtypes="?", shape=shape) for _ in range(count)]
    return (conditions, [draw.array(shape=shape) for _ in range(count)]), {"default": draw.one((0, 1.5, -2))}


def _ufunc_template(nin: int) -> Any:
    def draw_operands(draw: Draw) -> Any:
        first = draw.array()
        operands = [first] + [draw.scalar() if draw.chance(0.3) else draw.partner(first) for _ in range(nin - 1)]
        draw.random.shuffle(operands)
        kwargs = {"dtype": draw.dtype()} if draw.chance(0.1) and all(isinstance(one, Array) for one in operands) else {}
        return tuple(operands), kwargs

    return draw_operands


def _output_template(draw: Draw) -> Any:
    first = draw.array()
    out = Array(first.shape, draw.one(ALL), draw.one("CFTS"))
    return (first, draw.partner(first)), {"out": out} if draw.chance(0.8) else {"dtype": draw.dtype(), "out": out}


for _name, _entry in surface.load().items():
    if isinstance(_entry, surface.Ufunc):
        template(_name)(_ufunc_template(_entry.nin))
        if _entry.nin == 2 and _entry.nout == 1 and _name.startswith("cupy."):
            template(_name)(_output_template)


@template("cupy.isclose", "cupy.allclose")
def _close_to_a_scalar(draw: Draw) -> Any:
    operands = [draw.array(), draw.scalar()]
    draw.random.shuffle(operands)
    return tuple(operands), draw.one(({}, {"rtol": 1e-3, "atol": 0}, {"equal_nan": True}))
