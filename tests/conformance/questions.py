"""Questions about an array that an executor answers, with what NumPy answers: views, copies, contents, stores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tests.conformance.infer_calls import Draw

Asked = Callable[[Any, Any, Draw], Any]


class Question(NamedTuple):
    """One question. ``is_copied`` says that CuPy gives new memory where NumPy may show the array's own."""

    of_cupy: Asked
    of_numpy: Callable[[Any, Draw], Any]
    is_copied: bool = False


QUESTIONS: dict[str, Question] = {}


def _both(name: str, asked: Asked, *, is_copied: bool = False) -> None:
    """Ask both libraries in the same words."""
    QUESTIONS[name] = Question(asked, lambda x, draw: asked(np, x, draw), is_copied)


def _order(x: Any, draw: Draw) -> list[int]:
    return draw.random.sample(range(x.ndim), x.ndim)


def _after(do: Callable[[Any, Any, Draw], Any]) -> Asked:
    """Ask for an array after something was done to it."""

    def asked(xp: Any, x: Any, draw: Draw) -> Any:
        do(xp, x, draw)
        return x

    return asked


# --- views, with arguments that the notebook does not look into -------------------------------------------------------

_both("transpose(range)", lambda xp, x, draw: xp.transpose(x, range(x.ndim - 1, -1, -1)))
_both("transpose(array)", lambda xp, x, draw: xp.transpose(x, np.array(_order(x, draw))))
_both("x.transpose(array)", lambda xp, x, draw: x.transpose(np.array(_order(x, draw))))
_both("permute_dims", lambda xp, x, draw: xp.permute_dims(x, range(x.ndim - 1, -1, -1)))
_both("moveaxis", lambda xp, x, draw: xp.moveaxis(x, np.arange(x.ndim), np.array(_order(x, draw))))
_both("moveaxis(range)", lambda xp, x, draw: xp.moveaxis(x, range(x.ndim), range(x.ndim - 1, -1, -1)))
_both("rollaxis", lambda xp, x, draw: xp.rollaxis(x, np.int64(x.ndim - 1)))
_both("swapaxes", lambda xp, x, draw: x.swapaxes(np.array(0), np.array(-1)))
_both("reshape", lambda xp, x, draw: xp.reshape(x, np.array(x.shape[::-1])), is_copied=True)
_both("x.reshape", lambda xp, x, draw: x.reshape(np.array([-1])), is_copied=True)
_both("reshape(F)", lambda xp, x, draw: x.reshape(np.array([x.size, 1]), order="F"), is_copied=True)
_both("reshape(A)", lambda xp, x, draw: xp.reshape(x, range(x.size, x.size + 1), order="A"), is_copied=True)
_both("squeeze", lambda xp, x, draw: xp.squeeze(x, axis=np.int64(0)))
_both("expand_dims", lambda xp, x, draw: xp.expand_dims(x, np.array([0, -1])))
_both("broadcast_to", lambda xp, x, draw: xp.broadcast_to(x, np.array((2, *x.shape))))
_both("broadcast_arrays", lambda xp, x, draw: list(xp.broadcast_arrays(x, x[None])))
_both("split", lambda xp, x, draw: xp.array_split(x, np.array([1, 2]), np.int64(draw.axis(x))))
_both("hsplit", lambda xp, x, draw: xp.hsplit(x, np.array([1])))
_both("diagonal", lambda xp, x, draw: x.diagonal(np.array(0), np.array(0), np.array(x.ndim - 1)))
_both("flip", lambda xp, x, draw: xp.flip(x, np.int64(draw.axis(x))))
_both("rot90", lambda xp, x, draw: xp.rot90(x, np.int64(1)))
_both("x.view", lambda xp, x, draw: x.view(np.dtype([("f", x.dtype)])).view(x.dtype))
_both("einsum(lists)", lambda xp, x, draw: xp.einsum(x, list(range(x.ndim)), _order(x, draw)))
_both("einsum(...)", lambda xp, x, draw: xp.einsum("i...->...i", x))
_both("einsum(diagonal)", lambda xp, x, draw: xp.einsum(x, [0] * x.ndim, [0]))
_both("as_strided", lambda xp, x, draw: xp.lib.stride_tricks.as_strided(x, x.shape[::-1], x.strides[::-1]))
_both("as_strided(1)", lambda xp, x, draw: xp.lib.stride_tricks.as_strided(x, x.shape[:1], x.strides[:1]))
_both("windows", lambda xp, x, draw: xp.lib.stride_tricks.sliding_window_view(x, (1,), np.int64(draw.axis(x))))
_both("x[key]", lambda xp, x, draw: x[(slice(np.int64(0), None), np.int64(-1))])

# --- copies -----------------------------------------------------------------------------------------------------------

_both("apply_along_axis", lambda xp, x, draw: xp.apply_along_axis(xp.cumsum, draw.axis(x), x))
_both("copy(K)", lambda xp, x, draw: xp.array(x, order="K", copy=True, ndmin=3))
_both("astype", lambda xp, x, draw: x.astype("D", order=draw.order()).transpose())
_both("flatten", lambda xp, x, draw: x.flatten(draw.one("CF")))
_both("mask", lambda xp, x, draw: x[x == x])
_both("indices", lambda xp, x, draw: x[..., np.array([0, -1, 0])])
_both("take", lambda xp, x, draw: x.take(np.array([[0, x.size - 1]])))
_both("concatenate", lambda xp, x, draw: xp.concatenate([x, x], np.int64(draw.axis(x))).swapaxes(0, -1))
_both("block", lambda xp, x, draw: xp.hstack([x, x]).T)
_both("tril", lambda xp, x, draw: xp.tril(x).T)
_both("roll twice", lambda xp, x, draw: xp.roll(xp.roll(x, 1, 0).T, 1, -1).T)
_both("sort of argsort", lambda xp, x, draw: xp.sort(x.T, axis=draw.axis(x)).T)
_both("add.T", lambda xp, x, draw: (x + x.real).T)

# --- contents ---------------------------------------------------------------------------------------------------------

_both("tolist", lambda xp, x, draw: x.T.tolist())
_both("tobytes", lambda xp, x, draw: x.tobytes(draw.one("CF")))
_both("item", lambda xp, x, draw: x.reshape(-1)[x.size - 1].item())
_both("ravel(K)", lambda xp, x, draw: x.copy(order="C").ravel("F"), is_copied=True)
QUESTIONS["flat"] = Question(lambda xp, x, draw: x.flat[1:5], lambda x, draw: x.flatten()[1:5])
QUESTIONS["raw"] = Question(
    lambda xp, x, draw: xp.ElementwiseKernel("raw T x", "T y", "y = x[i]")(x, xp.empty(x.size, x.dtype)),
    lambda x, draw: x.flatten(),
)
QUESTIONS["memptr"] = Question(
    lambda xp, x, draw: xp.ndarray(x.shape, x.dtype, x.data, x.strides), lambda x, draw: x, is_copied=True
)
QUESTIONS["memory"] = Question(
    lambda xp, x, draw: (
        xp.ndarray((x.size,), x.dtype, x.data) if x.flags.forc else x.flatten()
    ),
    lambda x, draw: x.ravel("A") if x.flags.forc else x.flatten(),
    is_copied=True,
)  # fmt: skip

# --- stores -----------------------------------------------------------------------------------------------------------

_both("x[...] =", _after(lambda xp, x, draw: x.__setitem__(..., xp.flip(x, draw.axis(x)).copy())))
_both("x[indices] =", _after(lambda xp, x, draw: x.__setitem__(np.array([0, -1]), 1)))
_both("x.sort", _after(lambda xp, x, draw: x.sort(axis=draw.axis(x))))
_both("x += x", _after(lambda xp, x, draw: xp.add(x, x, out=x)))
_both("cumsum into", _after(lambda xp, x, draw: x.dtype.char in "fdFD" and xp.cumsum(x, axis=draw.axis(x), out=x)))
_both("copyto", _after(lambda xp, x, draw: xp.copyto(x, xp.flip(x, 0).copy())))
_both("fill", _after(lambda xp, x, draw: x.fill(1)))
_both("transpose into", _after(lambda xp, x, draw: xp.transpose(x, range(x.ndim)).__setitem__(0, 1)))
QUESTIONS["x.set"] = Question(
    _after(lambda xp, x, draw: x.set(np.arange(x.size).reshape(x.shape).astype(x.dtype))),
    lambda x, draw: x.__setitem__(..., np.arange(x.size).reshape(x.shape).astype(x.dtype)) or x,
)
