"""Calls of differences, quantiles, covariances, einsum and Fourier transforms."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.conformance.infer_calls.draw import REALS, Array, Draw, template


@template("cupy.diff")
def _diff(draw: Draw) -> Any:
    a = draw.array(1)
    kwargs: dict[str, Any] = {"n": draw.one((0, 1, 1, 2)), "axis": draw.axis(a)}
    if draw.chance(0.3):
        kwargs["prepend"] = Array((), draw.one(REALS))
    return (a,), kwargs


@template("cupy.ediff1d")
def _ediff1d(draw: Draw) -> Any:
    return (draw.array(),), {}


@template("cupy.trapezoid")
def _trapezoid(draw: Draw) -> Any:
    a = draw.array(1)
    if draw.chance(0.5):
        return (a,), {"axis": draw.axis(a), "dx": draw.one((1.0, 2))}
    return (a, Array((a.shape[-1],), "d")), {}


@template("cupy.gradient")
def _gradient(draw: Draw) -> Any:
    a = draw.array(1, 3)
    return (a, *draw.one(((), (2.0,)))), {"axis": draw.one((None, draw.axis(a))), "edge_order": draw.one((1, 2))}


@template("cupy.interp")
def _interp(draw: Draw) -> Any:
    n = draw.extent()
    return (draw.array(), Array((n,), draw.one(REALS)), draw.array(shape=(n if draw.chance(0.9) else 4,))), {}


@template("cupy.cov", "cupy.corrcoef")
def _cov(draw: Draw) -> Any:
    a = draw.array(1, 2)
    y = draw.array(shape=a.shape) if draw.chance(0.3) else None
    return (a, y), {"rowvar": draw.chance(0.7)}


@template("cupy.percentile")
def _percentile(draw: Draw) -> Any:
    a = draw.array(1, 3)
    method = draw.one(("linear", "linear", "lower", "midpoint", "nearest"))
    kwargs = {"axis": draw.one((None, draw.axis(a))), "method": method, "keepdims": draw.chance(0.3)}
    return (a, draw.one((50, 12.5, [10, 90], (25.0,), np.array([5.0, 50.0, 95.0])))), kwargs


@template("cupy.quantile")
def _quantile(draw: Draw) -> Any:
    a = draw.array(1, 3)
    return (a, draw.one((0.5, [0.1, 0.9], 1))), {"axis": draw.one((None, draw.axis(a)))}


@template("cupy.histogram")
def _histogram(draw: Draw) -> Any:
    return (draw.array(), draw.one((1, 5, 10))), {"range": draw.one(((0, 1), (0.0, 5.5), (-2, 3)))}


@template("cupy.bincount")
def _bincount(draw: Draw) -> Any:
    x = draw.array(1, 1, "BBHi")
    weights = draw.one((None, None, x, draw.partner(x, "dfi"), draw.array(0, 1, "dfi"), [1.0, 2.0], 2.5))
    return (x,), {"weights": weights, "minlength": draw.one((None, 10, 256, 300, 65_536, 70_000, 1 << 62))}


@template("cupy.packbits", "cupy.unpackbits")
def _bits(draw: Draw) -> Any:
    return (draw.array(dtypes="B?id"),), {}


@template("cupy.piecewise")
def _piecewise(draw: Draw) -> Any:
    shape = draw.shape(1, 2)
    return (
        draw.array(shape=shape, dtypes="fd"),
        [draw.array(shape=shape, dtypes="?")],
        draw.one(([1.0], [1.0, 2.0])),
    ), {}


@template("cupy.unwrap")
def _unwrap(draw: Draw) -> Any:
    a = draw.array(1, 3, "fde")
    return (a,), {"axis": draw.axis(a)}


SUBSCRIPTS = (
    "ij,jk->ik", "ij,kj->ik", "ij,jk", "i,i->", "i,j->ij", "ii->i", "ii", "ij->ji", "ij->", "ij->j", "ijk->kij",
    "bij,bjk->bik", "ij,ij->ij", "ij,ij->i", "ijk,jil->kl", "ab,b->a", "abc,cd->abd", "ij,->ij", "ijk,k->ji",
)  # fmt: skip


@template("cupy.einsum")
def _einsum(draw: Draw) -> Any:
    subscripts = draw.one(SUBSCRIPTS)
    extents = {label: draw.extent() for label in "abcdijkl"}
    inputs = subscripts.partition("->")[0].split(",")
    operands = [draw.array(shape=tuple(extents[label] for label in one)) for one in inputs]
    return (subscripts, *operands), {}


@template("cupy.fft.fft", "cupy.fft.ifft", "cupy.fft.rfft", "cupy.fft.irfft", "cupy.fft.hfft", "cupy.fft.ihfft")
def _fft(draw: Draw) -> Any:
    a = draw.array(1)
    kwargs: dict[str, Any] = {"axis": draw.axis(a)} if draw.chance(0.6) else {}
    if draw.chance(0.4):
        kwargs["n"] = draw.one((1, 2, 4, 8))
    if draw.chance(0.3):
        kwargs["norm"] = draw.one(("ortho", "forward", "bad"))
    return (a,), kwargs


@template("cupy.fft.fft2", "cupy.fft.ifft2", "cupy.fft.rfft2", "cupy.fft.irfft2", "cupy.fft.fftn", "cupy.fft.ifftn",
          "cupy.fft.rfftn", "cupy.fft.irfftn")  # fmt: skip
def _fftn(draw: Draw) -> Any:
    a = draw.array(2)
    kwargs: dict[str, Any] = {}
    if draw.chance(0.4):
        count = draw.random.randint(1, len(a.shape))
        kwargs["axes"] = tuple(draw.random.sample(range(-len(a.shape), 0), count))
        if draw.chance(0.4):
            kwargs["s"] = tuple(draw.one((2, 4, 6)) for _ in range(count))
    return (a,), kwargs


@template("cupy.fft.fftfreq", "cupy.fft.rfftfreq")
def _fftfreq(draw: Draw) -> Any:
    return (draw.one((1, 2, 7, 8)), draw.one((1.0, 0.5, 2))), {}


@template("cupy.fft.fftshift", "cupy.fft.ifftshift")
def _fftshift(draw: Draw) -> Any:
    a = draw.array(1)
    return (a,), {"axes": draw.one((None, draw.axis(a)))}


@template("cupy.einsum")
def _einsum_of_many(draw: Draw) -> Any:
    """Ellipses, lists of subscripts, one to four operands."""
    hidden, extents = draw.shape(0, 2), {label: draw.extent() for label in "abcd"}
    inputs, operands = [], []
    for _ in range(draw.random.randint(1, 4)):
        named = "".join(draw.random.sample("abcd", draw.random.randint(0, 3)))
        shape = [extents[label] if draw.chance(0.9) else 1 for label in named]
        if draw.chance(0.5):
            place = draw.random.randint(0, len(named))
            own = hidden[draw.random.randint(0, len(hidden)) :]
            named = f"{named[:place]}...{named[place:]}"
            shape[place:place] = [extent if draw.chance(0.8) else 1 for extent in own]
        inputs.append(named)
        operands.append(draw.array(shape=tuple(shape), dtypes="?bilfdD"))
    labels = sorted({label for named in inputs for label in named if label != "."})
    output = "".join(draw.random.sample(labels, draw.random.randint(0, len(labels))))
    if draw.chance(0.9) and any("..." in named for named in inputs):
        output = draw.one((f"{output}...", f"...{output}"))
    if draw.chance(0.3):
        numbers = [_numbers(named) for named in (*inputs, output)]
        pairs = [part for pair in zip(operands, numbers, strict=False) for part in pair]
        return (*pairs, *numbers[len(operands) :][: draw.one((0, 1))]), {}
    return (",".join(inputs) + draw.one(("", f"->{output}", f"->{output}")), *operands), {}


def _numbers(subscripts: str) -> list[Any]:
    spelt = subscripts.replace("...", "@")
    return [Ellipsis if one == "@" else "abcd".index(one) for one in spelt]
