"""Rules of products: dot, matmul, tensordot, outer, kron, cross, ... Their results are new and C-contiguous."""

from __future__ import annotations

from gpu_backend.opstream.layout import Shape
from gpu_backend.opstream.proof import reductions, windows
from gpu_backend.opstream.proof.arguments import as_axis, as_index, broadcast
from gpu_backend.opstream.proof.outcome import CannotProve, refusal
from gpu_backend.opstream.proof.promotion import promote
from gpu_backend.opstream.proof.registry import rule
from gpu_backend.opstream.proof.shadow import Array, array, new, ufunc
from gpu_backend.opstream.proof.values import is_items


@rule("cupy.dot", "cupy.ndarray.dot")
def dot(a: Array, b: Array, out: Array | None = None) -> Array:
    """As CuPy."""
    if out is not None:
        _check_output(a, b, out)
    if a.ndim == 0 or b.ndim == 0:
        return ufunc("multiply", a, b, out=out)
    if a.shape[-1] != b.shape[-2 if b.ndim > 1 else 0]:
        raise refusal(ValueError, "Axis dimension mismatch")
    rest = (*b.shape[:-2], b.shape[-1]) if b.ndim > 1 else ()
    return _made(a, b, (*a.shape[:-1], *rest), out)


def _check_output(first: Array, second: Array, out: Array) -> None:
    if promote(first.dtype, second.dtype) != out.dtype:
        raise refusal(ValueError, "Not supported dtype combination.")
    if not out.layout.c_contiguous:
        raise refusal(ValueError, "Output array must be C-contiguous")


def _made(first: Array, second: Array, shape: Shape, out: Array | None) -> Array:
    if out is None:
        return new(shape, promote(first.dtype, second.dtype))
    if out.shape != shape:
        raise CannotProve("an output of another shape")
    return out


@rule("cupy.matmul", "cupy.ndarray.__matmul__")
def matmul(a: Array, b: Array, /, out: Array | None = None) -> Array:
    """As CuPy."""
    if a.ndim == 0 or b.ndim == 0:
        raise refusal(ValueError, "Scalar operands are not allowed, use '*' instead")
    if out is not None:
        return _matmul_into(a, b, out)
    if max(a.ndim, b.ndim) <= 2:
        return dot(a, b)
    return new(_matmul_shape(a, b), promote(a.dtype, b.dtype))


@rule("cupy.ndarray.__rmatmul__")
def reflected_matmul(a: Array, b: Array) -> Array:
    """As CuPy."""
    return matmul(b, a)


def _matmul_into(first: Array, second: Array, out: Array) -> Array:
    if not (out.dtype == first.dtype == second.dtype and out.layout.c_contiguous):
        raise CannotProve("an output of another dtype or order")
    made = matmul(first, second)
    if made.shape != out.shape:
        raise CannotProve("an output of another shape")
    return out


def _matmul_shape(first: Array, second: Array) -> Shape:
    left = first.shape if first.ndim > 1 else (1, *first.shape)
    right = second.shape if second.ndim > 1 else (*second.shape, 1)
    ndim = max(len(left), len(right))
    left_batch = (1,) * (ndim - len(left)) + left[:-2]
    right_batch = (1,) * (ndim - len(right)) + right[:-2]
    batch = []
    for one, other in zip(left_batch, right_batch, strict=True):
        if one != other and 1 not in (one, other):
            raise refusal(ValueError, "operands could not be broadcast together with remapped shapes")
        batch.append(0 if 0 in (one, other) else max(one, other))
    if left[-1] != right[-2]:
        raise refusal(ValueError, f"shapes ({_listed(first.shape)}) and ({_listed(second.shape)}) not aligned")
    rows = () if first.ndim == 1 else (left[-2],)
    columns = () if second.ndim == 1 else (right[-1],)
    return (*batch, *rows, *columns)


def _listed(shape: Shape) -> str:
    return ",".join(map(str, shape))


@rule("cupy.vdot")
def vdot(a: Array, b: Array) -> Array:
    """As CuPy."""
    if a.size != b.size:
        raise refusal(ValueError, "Axis dimension mismatch")
    return new((), promote(a.dtype, b.dtype))


@rule("cupy.inner")
def inner(a: Array, b: Array) -> Array:
    """As CuPy."""
    if a.ndim == 0 or b.ndim == 0:
        return ufunc("multiply", a, b)
    if a.shape[-1] != b.shape[-1]:
        raise refusal(ValueError, "Axis dimension mismatch")
    if a.shape[-1] == 0:
        raise refusal(ZeroDivisionError, "integer division or modulo by zero")
    return new((*a.shape[:-1], *b.shape[:-1]), promote(a.dtype, b.dtype))


@rule("cupy.outer")
def outer(a: Array, b: Array, out: Array | None = None) -> Array:
    """As CuPy."""
    return ufunc("multiply", a.ravel()[:, None], b.ravel()[None, :], out=out)


@rule("cupy.tensordot")
def tensordot(a: Array, b: Array, axes: object = 2) -> Array:
    """As CuPy."""
    if a.ndim == 0 or b.ndim == 0:
        if axes != 0 and axes != ((), ()):
            raise refusal(ValueError, "An input is zero-dim while axes has dimensions")
        return ufunc("multiply", a, b)
    left, right = _contracted(axes, a.ndim)
    if len(left) != len(right):
        raise refusal(ValueError, "Axes length mismatch")
    if any(not -a.ndim <= axis < a.ndim for axis in left):
        raise CannotProve("an axis that is not there")
    if any(not -b.ndim <= axis < b.ndim for axis in right):
        raise CannotProve("an axis that is not there")
    if any(a.shape[one] != b.shape[other] for one, other in zip(left, right, strict=True)):
        raise refusal(ValueError, "Axis dimension mismatch")
    left, right = [axis % a.ndim for axis in left], [axis % b.ndim for axis in right]
    if len(set(left)) != len(left) or len(set(right)) != len(right):
        raise CannotProve("an axis named twice")
    shape = [extent for axis, extent in enumerate(a.shape) if axis not in left]
    shape += [extent for axis, extent in enumerate(b.shape) if axis not in right]
    return new(tuple(shape), promote(a.dtype, b.dtype))


def _contracted(axes: object, ndim: int) -> tuple[list[int], list[int]]:
    if is_items(axes):
        if len(axes) != 2:
            raise refusal(ValueError, "Axes must consist of two arrays.")
        both = [[as_index(one) for one in (part if is_items(part) else (part,))] for part in axes]
        return both[0], both[1]
    count = as_index(axes)
    if not 0 <= count <= ndim:
        raise CannotProve("more axes than there are")
    return list(range(ndim - count, ndim)), list(range(count))


@rule("cupy.kron")
def kron(a: Array, b: Array) -> Array:
    """As CuPy, of arrays."""
    if a.ndim == 0 or b.ndim == 0:
        return ufunc("multiply", a, b)
    ndim = max(a.ndim, b.ndim)
    left = (1,) * (ndim - a.ndim) + a.shape
    right = (1,) * (ndim - b.ndim) + b.shape
    made = ufunc("multiply", new((), a.dtype), new((), b.dtype))
    interleaved = tuple([extent for pair in zip(left, right, strict=True) for extent in pair])
    return new(interleaved, made.dtype).reshape(tuple([x * y for x, y in zip(left, right, strict=True)]))


@rule("cupy.cross")
def cross(a: Array, b: Array, axisa: object = -1, axisb: object = -1, axisc: object = -1, axis: object = None) -> Array:
    """As CuPy, of vectors of three."""
    if axis is not None:
        axisa = axisb = axisc = axis
    first = windows.moveaxis(a.layout, as_axis(axisa, a.ndim), -1)[1].shape
    second = windows.moveaxis(b.layout, as_axis(axisb, b.ndim), -1)[1].shape
    if first[-1] not in (2, 3) or second[-1] not in (2, 3):
        words = "incompatible dimensions for cross product\n(dimension must be 2 or 3)"
        raise refusal(ValueError, words)
    if 2 in (first[-1], second[-1]):
        raise CannotProve("a DeprecationWarning")
    shape = (*broadcast([first[:-1], second[:-1]]), 3)
    place = as_axis(axisc, len(shape))
    made = new(shape, promote(a.dtype, b.dtype))
    ufunc("subtract", made, made)
    return Array(windows.moveaxis(made.layout, -1, place)[1])


@rule("cupy.linalg.cross")
def linalg_cross(x1: Array, x2: Array, /, *, axis: object = -1) -> Array:
    """As CuPy."""
    if x1.shape != x2.shape:
        raise refusal(ValueError, "x1 and x2 must have the same shape")
    if x1.ndim == 0:
        raise refusal(ValueError, "cross() requires arrays of dimension at least 1")
    place = as_index(axis)
    if not -x1.ndim <= place < x1.ndim:
        raise CannotProve("an axis that is not there")
    if x1.shape[place] != 3:
        raise refusal(ValueError, "cross() dimension must equal 3")
    return cross(x1, x2, axis=axis)


@rule("cupy.trace", "cupy.ndarray.trace")
def trace(
    a: Array, offset: object = 0, axis1: object = 0, axis2: object = 1, dtype: object = None, out: Array | None = None
) -> Array:
    """As CuPy."""
    diagonal = a.window(windows.diagonal(a.layout, offset, axis1, axis2))
    return reductions.sum_(diagonal, -1, dtype, out, False)


def _convolved(a: object, v: object, mode: object) -> Array:
    first, second = array(a), array(v)
    if first.ndim != 1 or second.ndim != 1 or not first.size or not second.size:
        raise CannotProve("other than two vectors")
    longer, shorter = max(first.size, second.size), min(first.size, second.size)
    lengths = {"full": longer + shorter - 1, "same": longer, "valid": longer - shorter + 1}
    if mode not in lengths:
        raise CannotProve(f"mode {mode!r}")
    return new((lengths[mode],), promote(first.dtype, second.dtype))


@rule("cupy.convolve")
def convolve(a: object, v: object, mode: object = "full") -> Array:
    """As CuPy, of vectors that are not empty."""
    return _convolved(a, v, mode)


@rule("cupy.correlate")
def correlate(a: object, v: object, mode: object = "valid") -> Array:
    """As CuPy, of vectors that are not empty."""
    return _convolved(a, v, mode)
