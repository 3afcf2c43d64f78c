"""Images and splines on the CPU device where CuPy is not SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpu_backend.devices import open_device

IMAGE = np.arange(64, dtype=np.int32).reshape(8, 8)
INTERPOLATING = [
    ("shift", (1,)),
    ("zoom", (1,)),
    ("rotate", (0,)),
    ("affine_transform", (np.eye(2),)),
    ("map_coordinates", (np.ones((2, 3)),)),
    ("correlate", (np.ones((3, 3)),)),
    ("uniform_filter", (3,)),
]
ORDERING = [("minimum_filter", (3,)), ("median_filter", (3,)), ("grey_dilation", (3,))]


@pytest.fixture(scope="module")
def cp() -> Any:
    device = open_device("cpu")
    return lambda name, *args, **kwargs: device.resolve(f"cupyx.scipy.{name}")(*args, **kwargs)


@pytest.mark.parametrize(("name", "args"), INTERPOLATING)
@pytest.mark.parametrize("cval", [np.nan, np.inf, -np.inf])
def test_integers_cannot_hold_what_is_beyond_the_edge(cp: Any, name: str, args: Any, cval: float) -> None:
    for options in ({}, {"output": np.int64}, {"output": np.zeros((8, 8), np.uint8)}):
        with pytest.raises(NotImplementedError, match="Non-finite cval"):
            cp(f"ndimage.{name}", IMAGE, *args, mode="constant", cval=cval, **options)
    assert cp(f"ndimage.{name}", IMAGE, *args, mode="constant", cval=cval, output=np.float64).dtype == np.float64
    assert cp(f"ndimage.{name}", IMAGE, *args, mode="nearest", cval=cval).dtype == np.int32


@pytest.mark.parametrize(("name", "args"), ORDERING)
def test_nan_has_no_place_in_an_order(cp: Any, name: str, args: Any) -> None:
    with pytest.raises(NotImplementedError, match="NaN cval"):
        cp(f"ndimage.{name}", IMAGE, *args, mode="constant", cval=np.nan)
    assert cp(f"ndimage.{name}", IMAGE, *args, mode="constant", cval=1).dtype == np.int32


def test_class_methods_make_objects_and_arrays_of_the_device(cp: Any) -> None:
    spline = cp("interpolate.BSpline.basis_element", np.arange(5.0))
    assert type(spline).__module__ == "cupyx.scipy.interpolate._bspline"
    matrix = cp("interpolate.BSpline.design_matrix", np.array([1.5, 2.0]), np.arange(8.0) - 2, 3)
    assert type(matrix).__name__ == "csr_matrix"
    assert np.allclose(matrix.sum(axis=1), 1)
    pieces = cp("interpolate.PPoly.from_spline", spline)
    assert type(pieces).__module__ == "cupyx.scipy.interpolate._interpolate"
    at = np.array([1.5, 2.0])
    assert np.allclose(pieces(at), spline(at))


@pytest.mark.parametrize(("method", "degree"), [("slinear", 1), ("cubic", 3), ("quintic", 5)])
def test_splines_on_grids_are_exact_and_quick(cp: Any, method: str, degree: int) -> None:
    """SciPy takes a minute for the last, and gives six digits."""
    axes = (np.linspace(0, 1, 6), np.linspace(-1, 1, 7)[::-1], np.arange(8.0), np.arange(6.0))
    x, y, z, w = np.meshgrid(*axes, indexing="ij")

    def polynomial(x: Any, y: Any, z: Any, w: Any) -> Any:
        return np.stack([(1 + x) ** degree + y * z, y**degree - 2j * z + w], axis=-1)

    at = np.random.default_rng(1).uniform([0, -1, 0, 0], [1, 1, 7, 5], (9, 4))
    expected = polynomial(*at.T)
    spline = cp("interpolate.RegularGridInterpolator", axes, polynomial(x, y, z, w), method=method)
    assert np.allclose(spline(at), expected, rtol=1e-10, atol=1e-10)
    assert np.allclose(cp("interpolate.interpn", axes, polynomial(x, y, z, w), at, method), expected, atol=1e-10)
    with pytest.raises(ValueError, match="dimension"):
        cp("interpolate.interpn", axes, np.ones((6, 7)), at, method)


def test_neighbours_of_vertices_are_asked_for(cp: Any) -> None:
    """CuPy has a method where SciPy has an attribute."""
    square = cp("spatial.Delaunay", np.array([[0.0, 0], [0, 1], [1, 0], [1, 1]]))
    ends, neighbours = square.vertex_neighbor_vertices()
    assert ends.tolist() == [0, *np.cumsum(np.diff(ends))]
    assert all(set(neighbours[ends[one] : ends[one + 1]]) <= {0, 1, 2, 3} - {one} for one in range(4))
    assert len(neighbours) == 10  # four sides and a diagonal, from both ends
    assert (ends.dtype, neighbours.dtype) == (np.int64, np.int32)
    smooth = cp("interpolate.CloughTocher2DInterpolator", square, np.arange(4.0))  # SciPy's own use of them
    assert np.allclose(smooth(np.array([[0.0, 1.0], [1.0, 1.0]])), [1, 3])


@pytest.mark.parametrize(
    ("name", "args", "dtype"),
    [
        ("gaussian_filter", (1,), "e"), ("convolve", (np.ones((3, 3)),), "e"), ("median_filter", (3,), "e"),
        ("zoom", (2,), "e"), ("spline_filter", (), "d"), ("binary_erosion", (), "?"), ("fourier_gaussian", (1.5,), "d"),
        ("fourier_shift", (1.5,), "D"), ("mean", (), "d"),
    ],
)  # fmt: skip
def test_half_floats_come_back_as_cupy_gives_them(cp: Any, name: str, args: tuple[Any, ...], dtype: str) -> None:
    halves = np.arange(16, dtype="e").reshape(4, 4)
    made = cp(f"ndimage.{name}", halves, *args)
    assert made.dtype.char == dtype
    assert np.allclose(made, cp(f"ndimage.{name}", halves.astype("d"), *args), rtol=2e-3)


def test_half_floats_as_output(cp: Any) -> None:
    image = np.arange(16.0).reshape(4, 4)
    kept = np.empty((4, 4), "e")
    assert cp("ndimage.sobel", image, output=kept) is kept
    assert (kept == cp("ndimage.sobel", image)).all()
    assert cp("ndimage.sobel", image, output=np.float16).dtype == np.float16
    assert cp("ndimage.sobel", kept, output=np.float64).dtype == np.float64
