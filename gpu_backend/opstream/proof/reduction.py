"""How a reduction works out its result: loop, shape, memory order, and the two ways CuPy has of running it.

CuPy hands contiguous arrays to CUB where it can. That changes the memory order of the result ("F" for reductions over
the leading axes of an F-contiguous array) and the words of its refusals, so the choice is made here as CuPy makes it.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

from gpu_backend.opstream.layout import DType, Layout, Shape
from gpu_backend.opstream.proof.arguments import as_axes, as_bool, as_dtype
from gpu_backend.opstream.proof.outcome import CannotProve, refusal
from gpu_backend.opstream.proof.promotion import Loop, check_cast, find_loop, find_loop_for, loops, wrong_type
from gpu_backend.opstream.proof.shadow import Shadow, array, into, new

#: dtypes that CUB sums without promotion, and those it reduces otherwise.
_CUB_SUMS, _CUB_ANY = frozenset("lLefdFD"), frozenset("bBhHiIlLefdFD")
#: CUB counts in 32 bits.
_MOST_CUB = 0x7FFFFFFF


class Reduction(NamedTuple):
    """One reduction of CuPy.

    Attributes
    ----------
    name
        As in its error messages, such as "cupy_sum".
    table
        Its loops.
    has_identity
        Whether it has a value for no elements.
    cub
        The name of the operation in CUB, "" if it never goes there.
    """

    name: str
    table: tuple[Loop, ...]
    has_identity: bool
    cub: str = ""


def same(characters: str) -> tuple[str, ...]:
    """Return loops that keep the dtype."""
    return tuple([f"{char}->{char}" for char in characters])


def to(result: str, characters: str) -> tuple[str, ...]:
    """Return loops from each dtype to one."""
    return tuple([f"{char}->{result}" for char in characters])


#: Sums and products: integers grow to 64 bits.
_GROWN = (*to("l", "?b"), "B->L", "h->l", "H->L", "i->l", "I->L", "l->l", "L->L", *same("efdFD"))
_KEPT = same("?bBhHiIlLefdFD")
_TO_BOOL = to("?", "?BhHiIlLefdFD")
_MEANS = (*to("d", "?BhHiIlL"), *same("efdFD"))
_ARG = tuple([f"{char}->{result}" for result in "lihb" for char in "?BhHiIlL"]) + to("l", "efdFD")
_NANARG = to("l", "?BhHiIlLefdFD")

SUM = Reduction("cupy_sum", loops(_GROWN), True, "CUPY_CUB_SUM")
SUM_AS = Reduction("cupy_sum_with_dtype", loops(_KEPT), True, "CUPY_CUB_SUM")
PROD = Reduction("cupy_prod", loops(_GROWN), True, "CUPY_CUB_PROD")
PROD_AS = Reduction("cupy_prod_with_dtype", loops(_KEPT), True, "CUPY_CUB_PROD")
NANSUM = Reduction("cupy_nansum", loops(_GROWN), True)
NANSUM_AS = Reduction("cupy_nansum_with_dtype", loops(_KEPT), True)
NANSUM_COMPLEX = Reduction("cupy_nansum_complex_dtype", loops(same("FD")), True)
NANPROD = Reduction("cupy_nanprod", loops(_GROWN), True)
NANPROD_AS = Reduction("cupy_nanprod_with_dtype", loops(_KEPT), True)
NANPROD_COMPLEX = Reduction("cupy_nanprod_complex_dtype", loops(same("FD")), True)
MAX = Reduction("cupy_max", loops(_KEPT), False, "CUPY_CUB_MAX")
MIN = Reduction("cupy_min", loops(_KEPT), False, "CUPY_CUB_MIN")
NANMAX = Reduction("cupy_nanmax", loops(_KEPT), False)
NANMIN = Reduction("cupy_nanmin", loops(_KEPT), False)
ARGMAX = Reduction("cupy_argmax", loops(_ARG), False, "CUPY_CUB_ARGMAX")
ARGMIN = Reduction("cupy_argmin", loops(_ARG), False, "CUPY_CUB_ARGMIN")
NANARGMAX = Reduction("cupy_nanargmax", loops(_NANARG), False)
NANARGMIN = Reduction("cupy_nanargmin", loops(_NANARG), False)
ALL = Reduction("cupy_all", loops(_TO_BOOL), True)
ANY = Reduction("cupy_any", loops(_TO_BOOL), True)
COUNT_NONZERO = Reduction("cupy_count_nonzero", loops(to("l", "?BhHiIlLefdFD")), True)
MEAN = Reduction("cupy_mean", loops(_MEANS), False)
MEAN_EMPTY = Reduction("cupy_mean_empty", loops(_MEANS), True)
NANMEAN = Reduction("cupy_nanmean", loops(same("efdFD")), False)
NORM = Reduction("_norm_ord2", loops((*to("l", "?b"), "B->L", "h->l", "H->L", "i->l", "I->L", *same("lLefd"))), True)
NORM_COMPLEX = Reduction("_norm_ord2_complex", loops(("F->f", "D->d")), True)


def reduce(
    kind: Reduction, a: Shadow, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False
) -> Shadow:
    """Return what a reduction gives."""
    keep = as_bool(keepdims)
    wanted = None if dtype is None else as_dtype(dtype)
    if kind.cub:
        made = _by_cub(kind, a.layout, axis, wanted, keep)
        if made is not None:
            return made if out is None else _into_by_cub(made, out)
    return _plainly(kind, a, axis, wanted, out, keep)


def reduced_shape(shape: Shape, axes: Shape, keepdims: bool) -> Shape:
    """Return ``shape`` without ``axes``, or with them as ones."""
    if keepdims:
        return tuple([1 if axis in axes else extent for axis, extent in enumerate(shape)])
    return tuple([extent for axis, extent in enumerate(shape) if axis not in axes])


def check_axes(axis: Any, ndim: int) -> Shape:
    """Return the axes of a reduction, sorted. A list will do for a tuple."""
    return as_axes(axis, ndim)


def _plainly(kind: Reduction, a: Shadow, axis: Any, wanted: DType | None, out: Any, keep: bool) -> Shadow:
    loop = _loop(kind, a.dtype, wanted)
    if a.dtype.kind == "c" and loop.inputs[0].kind != "c":
        raise CannotProve("a ComplexWarning, or a loop that CUDA cannot compile")
    axes = check_axes(axis, a.ndim)
    shape = reduced_shape(a.shape, axes, keep)
    made = into(out, new(shape, loop.outputs[0]))
    if made.size and not kind.has_identity and 0 in a.shape:
        raise refusal(ValueError, f"zero-size array to reduction operation {kind.name} which has no identity")
    return made


def _loop(kind: Reduction, dtype: DType, wanted: DType | None) -> Loop:
    if wanted is None:
        loop = find_loop(kind.table, [(dtype, None)])
        if loop is None:
            raise wrong_type((dtype,), kind.name)
        return loop
    loop = find_loop_for(kind.table, wanted)
    if loop is None:
        raise wrong_type(wanted.type, kind.name)
    return loop


def _by_cub(kind: Reduction, layout: Layout, axis: Any, wanted: DType | None, keep: bool) -> Shadow | None:
    """Return the result if CuPy gives this reduction to CUB, else None."""
    if not (layout.c_contiguous or layout.f_contiguous):
        return None
    finds_place = "ARG" in kind.cub
    if finds_place and wanted is not None:
        return None
    axes = check_axes(axis, layout.ndim)
    if not _cub_takes(kind, layout.dtype, wanted) or layout.size > _MOST_CUB:
        return None
    if len(axes) == layout.ndim:
        _check_cub_identity(kind, layout, axes)
        dtype = find_loop(ARGMAX.table, [(layout.dtype, None)]) if finds_place else None
        shape = (1,) * layout.ndim if keep else ()
        return new(shape, layout.dtype if dtype is None else dtype.outputs[0])
    if finds_place or not _is_segmented(layout, axes):
        return None
    _check_cub_identity(kind, layout, axes)
    order = "C" if layout.c_contiguous else "F"
    return new(reduced_shape(layout.shape, axes, keep), layout.dtype, order)


def _into_by_cub(made: Shadow, out: Any) -> Shadow:
    target = array(out)
    if made.size == 1 and target.ndim != made.ndim:
        words = "output parameter for reduction operation has the wrong number of dimensions"
        raise refusal(ValueError, words)
    if made.shape != target.shape:
        if made.size == 1:
            raise CannotProve("a single value into many")
        raise refusal(ValueError, "output parameter for reduction operation has the wrong shape")
    check_cast(made.dtype, target.dtype, "unsafe")
    return target


def _cub_takes(kind: Reduction, dtype: DType, wanted: DType | None) -> bool:
    if wanted is not None:
        return wanted == dtype and dtype.char in _CUB_ANY
    return dtype.char in (_CUB_SUMS if kind in (SUM, PROD, SUM_AS, PROD_AS) else _CUB_ANY)


def _is_segmented(layout: Layout, axes: Shape) -> bool:
    """Tell whether the reduced axes are the innermost in memory and have elements."""
    if any(layout.shape[axis] == 0 for axis in axes):
        return False
    apart = any(after - before != 1 for before, after in pairwise(axes))
    if layout.size and (not axes or apart):
        return False
    return layout.size == 0 or (axes[-1] == layout.ndim - 1 if layout.c_contiguous else axes[0] == 0)


def _check_cub_identity(kind: Reduction, layout: Layout, axes: Shape) -> None:
    if not kind.has_identity and any(layout.shape[axis] == 0 for axis in axes):
        raise refusal(ValueError, f"zero-size array to reduction operation {kind.cub} which has no identity")
