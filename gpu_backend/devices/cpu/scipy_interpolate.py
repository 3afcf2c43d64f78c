"""``cupyx.scipy.interpolate`` on SciPy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.interpolate

from gpu_backend.devices.cpu.arrays import Array
from gpu_backend.devices.cpu.call import guarded
from gpu_backend.devices.cpu.scipy_functions import define_scipy
from gpu_backend.devices.cpu.scipy_objects import define_class
from gpu_backend.devices.cpu.scipy_sparse import like
from gpu_backend.devices.cpu.table import define

_PREFIX = "cupyx.scipy.interpolate"


def _design_matrix(base: Any) -> Any:
    """Return the class method of ``base`` with a matrix of CuPy's class, where SciPy gives an array."""

    def design_matrix(cls: object, *args: Any, **kwargs: Any) -> Any:
        return like("csr", base.design_matrix(*args, **kwargs))

    return classmethod(guarded(design_matrix))


def _spline_on_grid(self: Any, method: str, *solver: Any, **options: Any) -> Any:
    """Return the spline through the values of a regular grid: one axis after the other, exactly.

    SciPy's solves for all axes at once by iteration, to six digits and in minutes where this takes milliseconds; CuPy's
    solves directly.
    """
    degree = self._SPLINE_DEGREE_MAP[method]
    coefficients, knots = self._values, []
    for axis, points in enumerate(self._grid):
        along = scipy.interpolate.make_interp_spline(points, coefficients, degree, axis=axis)
        coefficients = np.moveaxis(along.c, 0, axis)
        knots.append(along.t)
    return scipy.interpolate.NdBSpline(tuple(knots), np.ascontiguousarray(coefficients), degree)


_MEMBERS = {
    "BSpline": {"design_matrix": _design_matrix(scipy.interpolate.BSpline)},
    "NdBSpline": {"design_matrix": _design_matrix(scipy.interpolate.NdBSpline)},
    "RegularGridInterpolator": {"_construct_spline": _spline_on_grid},
}

#: Class name to the module of CuPy's that it says it is from.
_CLASSES = {
    "Akima1DInterpolator": "_cubic",
    "BPoly": "_interpolate",
    "BSpline": "_bspline",
    "BarycentricInterpolator": "_polyint",
    "CloughTocher2DInterpolator": "_interpnd",
    "CubicHermiteSpline": "_cubic",
    "CubicSpline": "_cubic",
    "InterpolatedUnivariateSpline": "_fitpack2",
    "KroghInterpolator": "_polyint",
    "LSQUnivariateSpline": "_fitpack2",
    "LinearNDInterpolator": "_interpnd",
    "NdBSpline": "_ndbspline",
    "NdPPoly": "_interpolate",
    "NearestNDInterpolator": "_ndgriddata",
    "PPoly": "_interpolate",
    "PchipInterpolator": "_cubic",
    "RBFInterpolator": "_rbfinterp",
    "RegularGridInterpolator": "_rgi",
    "UnivariateSpline": "_fitpack2",
    "interp1d": "_interpolate",
}

#: SciPy's class to ours, for objects that SciPy's functions make.
_ours: dict[type, type] = {}

for _name, _module in _CLASSES.items():
    _base = getattr(scipy.interpolate, _name)
    _ours[_base] = define_class(_base, f"{_PREFIX}.{_name}", module=f"{_PREFIX}.{_module}", members=_MEMBERS.get(_name))


def _adopting(function: Callable[..., object]) -> Callable[..., Any]:
    """Return ``function`` so that a spline it makes is of our class."""

    def call(*args: object, **kwargs: object) -> Any:
        made = function(*args, **kwargs)
        if type(made) in _ours:
            made.__class__ = _ours[type(made)]
        return made

    call.__name__ = function.__name__
    return call


define_scipy(
    _PREFIX, scipy.interpolate, without=("interpn", "make_interp_spline", "make_lsq_spline", "splder", "splantider")
)
for _name in ("make_interp_spline", "make_lsq_spline", "splder", "splantider"):
    define(f"{_PREFIX}.{_name}")(_adopting(getattr(scipy.interpolate, _name)))


@define(f"{_PREFIX}.interpn")
def interpn(
    points: Any, values: Array, xi: Any, method: str = "linear", bounds_error: bool = True, fill_value: Any = np.nan
) -> Array:
    kind: Any = _ours[scipy.interpolate.RegularGridInterpolator]
    if method not in kind._SPLINE_METHODS_ndbspl:
        made: Array = scipy.interpolate.interpn(points, values, xi, method, bounds_error, fill_value)
        return made
    if len(points) > values.ndim:
        raise ValueError(f"There are {len(points)} point arrays, but values has {values.ndim} dimensions")
    result: Array = kind(points, values, method=method, bounds_error=bounds_error, fill_value=fill_value)(xi)
    return result
