"""Arrays that libraries of several fields derive from CuPy's; what is of their class, and what is not."""

from __future__ import annotations

import copy
import pickle

import cupy as cp
import numpy as np
from expecting import refused

# --- finite differences: meshes that answer to NumPy's ufuncs --------------------------------------------------------


class Mesh(cp.ndarray):
    """Values on a grid; made of a description, or of another mesh."""

    def __new__(cls, init: object, value: float = 0.0) -> Mesh:
        if isinstance(init, Mesh):
            made = cp.ndarray.__new__(cls, shape=init.shape, dtype=init.dtype)
            made[:] = init[:]
            return made
        shape, dtype = init  # type: ignore[misc]
        made = cp.ndarray.__new__(cls, shape, dtype=dtype)
        made.fill(value)
        return made

    def __array_ufunc__(self, function: object, method: str, *inputs: object, **kwargs: object) -> object:
        plain = [one.view(cp.ndarray) if isinstance(one, Mesh) else one for one in inputs]
        return super().__array_ufunc__(function, method, *plain, **kwargs).view(type(self))

    def __abs__(self) -> float:
        return float(cp.max(cp.ndarray.__abs__(self)))


class TwoParts(Mesh):
    """A mesh of two components."""

    @property
    def explicit(self) -> Mesh:
        return self[0].view(Mesh)

    @explicit.setter
    def explicit(self, value: object) -> None:
        self.explicit[:] = value


u = Mesh(((4,), "d"), 2.0)
again = Mesh(u)
assert (type(again), again.get().tolist()) == (Mesh, [2.0] * 4)
assert abs(-3 * u) == 6
for made in (u + 1, 1 - u, u * again, np.add(u, u), np.sin(u), u[1:], u.T, u.reshape(2, 2)):
    assert type(made) is Mesh, made
assert type(u.sum()) is type(u[[0]]) is type(u.copy()) is type(u @ u) is cp.ndarray
parts = TwoParts(((2, 3), "f"))
parts.explicit = 5
assert (float(parts[0].sum()), float(parts[1].sum()), type(parts.explicit)) == (15.0, 0.0, Mesh)

# --- images: metadata that views carry along -------------------------------------------------------------------------


class Image(cp.ndarray):
    """Pixels with a spacing."""

    def __new__(cls, pixels: object, spacing: float = 1.0) -> Image:
        made = cp.asarray(pixels).view(cls)
        made.spacing = spacing
        return made

    def __init__(self, pixels: object, spacing: float = 1.0) -> None:
        super().__init__(pixels, spacing)  # CuPy takes anything

    def __array_finalize__(self, other: object) -> None:
        if other is not None:
            self.spacing = getattr(other, "spacing", None)

    def sum(self, *args: object, **kwargs: object) -> object:
        return super().sum(*args, **kwargs) * self.spacing


image = Image([[1.0, 2.0], [3.0, -4.0]], 0.5)
assert (type(image), image.spacing, float(image.sum()), float(cp.sum(image))) == (Image, 0.5, 1.0, 1.0)
assert [one.spacing for one in (image[0], image * 2, -image, cp.sqrt(cp.abs(image)), image.T)] == [0.5] * 5
for made in (image.round(), image.clip(0, 1), cp.where(image > 0, image, 0), cp.tril(image), image.view("i8")):
    assert (type(made), made.spacing) == (Image, 0.5)
assert type(cp.nan_to_num(image)) is type(cp.diff(image, prepend=0)) is cp.ndarray  # made by it, not by a ufunc
assert cp.nan_to_num(image, copy=False) is image
other = image.astype("F").view(Image)
assert type(other.conj()) is type(other.real) is type(other.imag) is type(image.imag) is Image
assert type(pickle.loads(pickle.dumps(image))) is type(copy.deepcopy(image)) is cp.ndarray
assert type(cp.zeros_like(image)) is type(cp.concatenate([image, image])) is cp.ndarray
assert type(cp.asarray(image)) is Image
refused(ValueError, lambda: image.view(Image, Image), "twice")
refused(ValueError, lambda: image.view(type=int), "sub-type")
refused(AttributeError, lambda: setattr(cp.ones(2), "spacing", 1))
finalized: list[str] = []


class Noted(cp.ndarray):
    def __array_finalize__(self, other: object) -> None:
        finalized.append(type(other).__name__)


noted = cp.ndarray.__new__(Noted, (3,))
noted.view(Image)
noted.view(Noted)
assert finalized == ["NoneType", "Noted"]
