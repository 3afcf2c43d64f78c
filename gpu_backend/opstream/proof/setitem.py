"""Proves that ``x[key] = value`` succeeds."""

from __future__ import annotations

import numpy as np

from gpu_backend.opstream.layout import Layout, Shape, SomeRows, strided
from gpu_backend.opstream.proof import advanced
from gpu_backend.opstream.proof.arguments import is_known
from gpu_backend.opstream.proof.outcome import CannotProve, Unproved, proves, refusal
from gpu_backend.opstream.proof.scalars import check_fill, converts, fills_quietly
from gpu_backend.opstream.proof.values import is_items

#: Views whose assignment from a layout is proved.
_proved: set[tuple[Layout, Layout]] = set()
_MOST_PROOFS = 8_192


def check(layout: Layout, key: object, value: object) -> None:
    """End with what CuPy raises for ``x[key] = value``, if it raises. A rule, for other rules.

    Parameters
    ----------
    layout
        Of ``x``.
    key
        object index; arrays in it as layouts.
    value
        A layout, or what the user passed.
    """
    selected = advanced.select(layout, key)
    if isinstance(selected, advanced.Selection):
        _check_scatter(selected, value)
    else:
        check_assignment(selected[1], value)


def assign(view: Layout, value: object) -> Unproved | None:
    """Prove that filling a window of layout ``view`` with ``value`` succeeds: None if it does.

    Raises
    ------
    Exception
        What CuPy raises for this value.
    """
    if type(value) is Layout:
        if (view, value) in _proved:
            return None
    elif fills_quietly(value, view.dtype):
        return None
    return _assign(view, value)


def was_proved(view: Layout, value: Layout) -> bool:
    """Tell at once whether filling a window of layout ``view`` with an array of layout ``value`` has been proved."""
    return (view, value) in _proved


def is_proved(view: Layout, value: object) -> bool:
    """Tell whether filling a window of layout ``view`` with ``value`` surely succeeds.

    Raises
    ------
    Exception
        What CuPy raises if it surely fails.
    """
    return assign(view, value) is None


def fills_chosen(layout: Layout, mask: Layout, value: SomeRows) -> bool:
    """Tell whether ``x[mask] = value`` surely succeeds where ``value`` has as many rows as ``mask`` true elements."""
    return (
        layout.shape == (*mask.shape, *value.rest)
        and layout.size > 0
        and is_known(layout.dtype)
        and (value.dtype.kind != "c" or layout.dtype.kind in "bc")
    )


@proves
def refuse_host_values(value: object, view: Layout) -> None:
    """Raise as CuPy does if ``value`` is host data that a basic index may not be set to, of whatever dtype."""
    if not (isinstance(value, np.ndarray) and value.ndim):
        _check_dtype(view)
    check_fill(value, view.dtype)


def check_assignment(view: Layout, value: object) -> None:
    """End with what CuPy raises for filling a window of layout ``view`` with ``value``, if it raises."""
    _check_dtype(view)
    if not isinstance(value, Layout):
        check_fill(value, view.dtype)
        return
    check_copy(value, view)
    if len(_proved) >= _MOST_PROOFS:
        _proved.clear()
    _proved.add((view, value))


def check_copy(source: Layout, target: Layout) -> None:
    """Refuse as CuPy does if ``target[...] = source`` cannot copy the elements of ``source`` into ``target``."""
    _check_dtype(source)
    if source.dtype.kind == "c" and target.dtype.kind not in "bc":
        raise CannotProve("a ComplexWarning")
    shape = without_leading_ones(source.shape)
    lead = len(target.shape) - len(shape)
    if lead < 0:
        _refuse_shapes(shape, target.shape)
    for extent, wanted in zip(shape, target.shape[lead:], strict=True):
        if extent not in (1, wanted):
            _refuse_shapes(shape, target.shape)


def without_leading_ones(shape: Shape) -> Shape:
    """Return ``shape`` without its first extents as long as they are one."""
    for place, extent in enumerate(shape):
        if extent != 1:
            return shape[place:]
    return ()


def _refuse_shapes(source: Shape, target: Shape) -> None:
    """Raise CuPy's error: one for shapes that do not broadcast, another for those that broadcast to a third."""
    ndim = max(len(source), len(target))
    padded = zip((1,) * (ndim - len(source)) + source, (1,) * (ndim - len(target)) + target, strict=True)
    if all(one == other or 1 in (one, other) for one, other in padded):
        raise refusal(ValueError, "Out shape is mismatched")
    raise refusal(ValueError, f"operands could not be broadcast together with shapes {source} {target}")


def _check_scatter(selected: advanced.Selection, value: object) -> None:
    view = selected.view
    _check_dtype(view)
    if view.size == 0 and (selected.mask_ndim is not None or 0 not in selected.shape):
        raise CannotProve("an assignment to no elements")
    if isinstance(value, Layout):
        _check_dtype(value)
    if selected.mask_ndim is not None:
        _check_scatter_by_mask(selected, value)
        return
    target = selected.shape
    shape = value.shape if isinstance(value, Layout) else _host_shape(value, view)
    if isinstance(value, Layout):
        if value.dtype.kind == "c" and view.dtype.kind not in "bc":
            raise CannotProve("a ComplexWarning")
        shape = without_leading_ones(shape)
    _check_broadcast(shape, target)


def mask_over(layout: Layout, mask: Layout, value: Layout | None) -> Layout | None:
    """Return how ``mask`` lies as one that broadcasts to ``x``, if ``x[mask] = value`` is ``copyto(x, value, mask)``.

    So it is if what goes into a row does not depend on how many rows the mask has chosen before.

    Parameters
    ----------
    value
        None for a number that surely fits.

    Returns
    -------
    layout
        None where it may be something else, or nothing, or fail.
    """
    ndim, shape = len(mask.shape), layout.shape
    if mask.dtype.kind != "b" or not 0 < ndim <= len(shape) or shape[:ndim] != mask.shape:
        return None
    if not layout.size or not is_known(layout.dtype):
        return None
    rest = shape[ndim:]
    if value is not None:
        fits = len(value.shape) <= len(rest) and all(
            extent in (1, wanted) for extent, wanted in zip(reversed(value.shape), reversed(rest), strict=False)
        )
        if not fits or not is_known(value.dtype) or (value.dtype.kind == "c" and layout.dtype.kind != "c"):
            return None
    return strided(mask.shape + (1,) * len(rest), mask.strides + (0,) * len(rest), mask.dtype)


@proves
def fill_places(layout: Layout, mask: Layout, value: Layout, count: int) -> None:
    """Prove that ``x[mask] = value`` succeeds, for a mask of which ``count`` elements are true."""
    ndim = len(mask.shape)
    if mask.dtype.kind != "b" or not 0 < ndim <= len(layout.shape) or layout.shape[:ndim] != mask.shape:
        raise CannotProve("a mask of another shape")
    _check_scatter(advanced.Selection(layout, 0, (), ndim, count), value)


def _check_scatter_by_mask(selected: advanced.Selection, value: object) -> None:
    """A value that broadcasts along the selected elements fits however many there are."""
    view, mask_ndim = selected.view, selected.mask_ndim
    assert mask_ndim is not None
    if isinstance(value, Layout):
        if value.dtype.kind == "c" and view.dtype.kind not in "bc":
            raise CannotProve("a ComplexWarning")
        shape = without_leading_ones(value.shape)
    else:
        shape = () if selected.known is None else _host_shape(value, view)
        if selected.known is None and not converts(value, view.dtype):
            raise CannotProve("whether the value is looked at depends on the mask")
    if selected.known is not None:
        if 0 not in selected.masked_shape:  # else CuPy does not look at the value
            _check_broadcast(shape, selected.masked_shape)
        return
    rest = view.shape[selected.axis + mask_ndim :]
    fits = len(shape) <= len(rest) and all(
        extent in (1, wanted) for extent, wanted in zip(reversed(shape), reversed(rest), strict=False)
    )
    if not fits:
        raise CannotProve("the number of elements that a mask selects")


def _host_shape(value: object, view: Layout) -> Shape:
    if converts(value, view.dtype):
        return ()
    if isinstance(value, np.ndarray) and np.can_cast(value.dtype, view.dtype, "same_kind"):
        return tuple(value.shape)
    if is_items(value) and all(converts(one, view.dtype) for one in value):
        return (len(value),)
    raise CannotProve(f"a value of {type(value).__name__}")


def _check_broadcast(shape: Shape, target: Shape) -> None:
    if len(shape) > len(target):
        raise refusal(ValueError, "input operand has more dimensions than allowed by the axis remapping")
    for extent, wanted in zip(reversed(shape), reversed(target), strict=False):
        if extent not in (1, wanted):
            raise refusal(
                ValueError,
                f"operands could not be broadcast together with shape {shape} and requested shape {target}",
            )


def _check_dtype(layout: Layout) -> None:
    if not is_known(layout.dtype):
        raise CannotProve(f"dtype {layout.dtype}")


setitem = proves(check)
_assign = proves(check_assignment)
