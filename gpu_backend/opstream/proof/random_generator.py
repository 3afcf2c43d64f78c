"""Rules of the methods of ``cupy.random.Generator``."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gpu_backend.opstream.layout import DType
from gpu_backend.opstream.proof.arguments import FLOAT64, INT64, as_dtype, as_index, as_shape
from gpu_backend.opstream.proof.outcome import CannotProve
from gpu_backend.opstream.proof.random import randint
from gpu_backend.opstream.proof.registry import rule
from gpu_backend.opstream.proof.shadow import Array, new

#: Distributions by name: their parameters with defaults, and the dtype that they draw.
_DRAWN: dict[str, tuple[dict[str, float | None], DType]] = {
    "beta": ({"a": None, "b": None}, FLOAT64),
    "binomial": ({"n": None, "p": None}, INT64),
    "chisquare": ({"df": None}, FLOAT64),
    "exponential": ({"scale": 1.0}, FLOAT64),
    "f": ({"dfnum": None, "dfden": None}, FLOAT64),
    "gamma": ({"shape": None, "scale": 1.0}, FLOAT64),
    "geometric": ({"p": None}, INT64),
    "poisson": ({"lam": 1.0}, INT64),
    "power": ({"a": None}, FLOAT64),
    "standard_gamma": ({"shape": None}, FLOAT64),
}


@rule("cupy.random.Generator.random")
def generator_random(
    generator: object, size: object = None, dtype: object = np.float64, out: Array | None = None
) -> Array:
    """As CuPy."""
    wanted = as_dtype(dtype)
    if out is not None or wanted.char not in "fd":
        raise CannotProve("an output, or another dtype")
    return new(() if size is None else as_shape(size), wanted)


@rule("cupy.random.Generator.standard_normal", "cupy.random.Generator.standard_exponential")
def generator_standard(generator: object, size: object = None, dtype: object = np.float64) -> Array:
    """As CuPy."""
    return generator_random(generator, size, dtype)


@rule("cupy.random.Generator.uniform")
def generator_uniform(
    generator: object, low: object = 0.0, high: object = 1.0, size: object = None, dtype: object = np.float64
) -> Array:
    """As CuPy, between host numbers."""
    if type(low) not in (int, float) or type(high) not in (int, float):
        raise CannotProve("limits that are arrays")
    return generator_random(generator, size, dtype)


@rule("cupy.random.Generator.integers")
def generator_integers(
    generator: object,
    low: object,
    high: object = None,
    size: object = None,
    dtype: object = np.int64,
    endpoint: object = False,
) -> Array:
    """As CuPy."""
    last = as_index(low if high is None else high) - (0 if endpoint else 1)
    return randint(0 if high is None else low, last + 1, size, dtype)


def _distribution(defaults: dict[str, float | None], dtype: DType) -> Callable[..., Array]:
    """Return the rule of a distribution, for parameters that are host numbers."""

    def drawn(generator: object, *args: object, **kwargs: object) -> Array:
        names = [*defaults, "size"]
        if len(args) > len(names) or set(kwargs) - set(names[len(args) :]):
            raise CannotProve("other arguments than parameters and a size")
        given = defaults | dict(zip(names, args, strict=False)) | kwargs
        size = given.pop("size", None)
        if not all(type(given[name]) is float or (type(given[name]) is int and name != "p") for name in defaults):
            raise CannotProve("parameters that are no host numbers")
        if size is not None and type(size) not in (int, tuple):
            raise CannotProve("an unusual size")
        return new(() if size is None else as_shape(size), dtype)

    return drawn


for _name, (_defaults, _dtype) in _DRAWN.items():
    rule(f"cupy.random.Generator.{_name}")(_distribution(_defaults, _dtype))
