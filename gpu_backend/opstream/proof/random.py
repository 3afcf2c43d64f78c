"""Rules of random numbers: functions of cupy.random, and the methods of RandomState."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

import numpy as np

from gpu_backend.opstream.layout import DType, Shape
from gpu_backend.opstream.proof.arguments import INT64, as_bool, as_dtype, as_index, as_shape, broadcast
from gpu_backend.opstream.proof.outcome import CannotProve, WillRaise, refusal
from gpu_backend.opstream.proof.registry import Rule, rule
from gpu_backend.opstream.proof.shadow import Array, array, new
from gpu_backend.opstream.proof.values import is_real

_REAL = "fd"


class Distribution(NamedTuple):
    """A distribution of CuPy.

    Attributes
    ----------
    parameters
        The defaults of its parameters by name, None for those without.
    dtypes
        Characters of the dtypes that it surely draws; the first is the default.
    lowest
        The parameters that CuPy checks must be above this, or may be it if `may_be_lowest`.
    takes_arrays
        Whether parameters may be arrays without being looked at.
    """

    parameters: dict[str, float | None]
    dtypes: str = "df"
    lowest: float | None = None
    may_be_lowest: bool = True
    takes_arrays: bool = True


_DISTRIBUTIONS = {
    "beta": Distribution({"a": None, "b": None}),
    "binomial": Distribution({"n": None, "p": None}, "li"),
    "chisquare": Distribution({"df": None}),
    "exponential": Distribution({"scale": 1.0}, lowest=0, takes_arrays=False),
    "f": Distribution({"dfnum": None, "dfden": None}),
    "gamma": Distribution({"shape": None, "scale": 1.0}),
    "geometric": Distribution({"p": None}, "li"),
    "gumbel": Distribution({"loc": 0.0, "scale": 1.0}, takes_arrays=False),
    "hypergeometric": Distribution({"ngood": None, "nbad": None, "nsample": None}, "li", lowest=1, takes_arrays=False),
    "laplace": Distribution({"loc": 0.0, "scale": 1.0}, takes_arrays=False),
    "logistic": Distribution({"loc": 0.0, "scale": 1.0}, takes_arrays=False),
    "lognormal": Distribution({"mean": 0.0, "sigma": 1.0}, takes_arrays=False),
    "noncentral_chisquare": Distribution({"df": None, "nonc": None}, lowest=0, may_be_lowest=False, takes_arrays=False),
    "noncentral_f": Distribution(
        {"dfnum": None, "dfden": None, "nonc": None}, lowest=0, may_be_lowest=False, takes_arrays=False
    ),
    "normal": Distribution({"loc": 0.0, "scale": 1.0}),
    "pareto": Distribution({"a": None}, takes_arrays=False),
    "poisson": Distribution({"lam": 1.0}, "li"),
    "power": Distribution({"a": None}, lowest=0, may_be_lowest=False, takes_arrays=False),
    "rayleigh": Distribution({"scale": 1.0}, lowest=0, takes_arrays=False),
    "standard_gamma": Distribution({"shape": None}),
    "standard_t": Distribution({"df": None}),
    "uniform": Distribution({"low": 0.0, "high": 1.0}, takes_arrays=False),
    "vonmises": Distribution({"mu": None, "kappa": None}),
    "wald": Distribution({"mean": None, "scale": None}, takes_arrays=False),
    "weibull": Distribution({"a": None}, lowest=0, may_be_lowest=False, takes_arrays=False),
    "zipf": Distribution({"a": None}, "li", lowest=1, may_be_lowest=False, takes_arrays=False),
}


def _drawn(kind: Distribution, args: tuple[object, ...], kwargs: dict[str, object]) -> Array:
    """Return what a distribution draws. Its parameters come first, then ``size`` and ``dtype``."""
    names = [*kind.parameters, "size", "dtype"]
    if len(args) > len(names) or set(kwargs) - set(names[len(args) :]):
        raise CannotProve("an argument that there is not, or given twice")
    given = kind.parameters | dict(zip(names, args, strict=False)) | kwargs
    parameters = [given[name] for name in kind.parameters]
    if any(parameter is None for parameter in parameters):
        raise CannotProve("a missing parameter")
    shapes = [_check_parameter(kind, parameter) for parameter in parameters]
    dtype = _dtype(kind, given.get("dtype"))
    size = None if given.get("size") is None else as_shape(given["size"])
    try:
        drawn = broadcast(shapes if size is None else [*shapes, size])
    except WillRaise:  # in the words of the kernel that draws, of which there are many
        raise CannotProve("parameters that do not fit") from None
    if size is not None and drawn != size:
        raise CannotProve("parameters that do not fit the size")
    return new(drawn, dtype)


def _check_parameter(kind: Distribution, parameter: object) -> Shape:
    if isinstance(parameter, Array):
        if not kind.takes_arrays or parameter.dtype.char not in "fdl":
            raise CannotProve("a parameter that is looked at")
        return parameter.shape
    if not is_real(parameter) or not np.isfinite(parameter):
        raise CannotProve("a parameter of another kind")
    if kind.lowest is not None and not (parameter > kind.lowest or (kind.may_be_lowest and parameter == kind.lowest)):
        raise CannotProve("a parameter that CuPy may refuse")
    return ()


def _dtype(kind: Distribution, spec: object) -> DType:
    wanted = np.dtype(kind.dtypes[0]) if spec is None else as_dtype(spec)
    if wanted.char not in kind.dtypes:
        raise CannotProve(f"random numbers of {wanted}")
    return wanted


def _function(kind: Distribution) -> Rule:
    return lambda *args, **kwargs: _drawn(kind, args, kwargs)


def _method(kind: Distribution) -> Rule:
    return lambda state, *args, **kwargs: _drawn(kind, args, kwargs)


for _name, _kind in _DISTRIBUTIONS.items():
    rule(f"cupy.random.{_name}")(
        _function(_kind._replace(parameters={"scale": None}) if _name == "exponential" else _kind)
    )
    rule(f"cupy.random.RandomState.{_name}")(_method(_kind))


def _sample(size: object = None, dtype: object = float) -> Array:
    wanted = as_dtype(dtype)
    if wanted.char not in _REAL:
        raise refusal(TypeError, "cupy.random only supports float32 and float64")
    return new(() if size is None else as_shape(size), wanted)


def _seed(seed: object) -> None:
    if type(seed) is not int or not 0 <= seed < 1 << 64:
        raise CannotProve("a seed of another kind")


def _sized(*size: object, dtype: object = float) -> Array:
    return _sample(size, dtype)


def _register(name: str, function: Rule) -> None:
    """Register a rule for a function of cupy.random and for the method of RandomState."""
    rule(f"cupy.random.{name}")(function)
    rule(f"cupy.random.RandomState.{name}")(lambda state, *args, **kwargs: function(*args, **kwargs))


for _name in ("random_sample", "standard_normal", "standard_exponential", "standard_cauchy"):
    _register(_name, _sample)
_register("seed", _seed)
_register("rand", _sized)
_register("randn", _sized)


def randint(low: object, high: object = None, size: object = None, dtype: object = int) -> Array:
    """As CuPy."""
    bounds = [as_index(low)] if high is None else [as_index(low), as_index(high)]
    first, last = (0, bounds[0] - 1) if high is None else (bounds[0], bounds[1] - 1)
    wanted = as_dtype(dtype)
    if wanted.kind not in "iu":
        raise CannotProve(f"integers of {wanted}")
    info = np.iinfo(wanted)
    if first > last:
        raise refusal(ValueError, "low >= high")
    if first < info.min:
        raise refusal(ValueError, f"low is out of bounds for {wanted.name}")
    if last > info.max:
        raise refusal(ValueError, f"high is out of bounds for {wanted.name}")
    return new(() if size is None else as_shape(size), wanted)


_register("randint", randint)


@rule("cupy.random.random_integers")
def random_integers(low: object, high: object = None, size: object = None) -> Array:
    """As CuPy."""
    first, last = (1, as_index(low)) if high is None else (as_index(low), as_index(high))
    return randint(first, last + 1, size)


def _permutation(a: object) -> Array:
    if isinstance(a, Array):
        if a.ndim == 0 or a.size == 0:
            raise CannotProve("nothing to permute")
        return new(a.shape, a.dtype)
    return new(as_shape(as_index(a)), INT64)


def _shuffle(a: object) -> None:
    given = array(a)
    if given.ndim == 0:
        raise refusal(TypeError, "An array whose ndim is 0 is not supported")
    if given.size == 0:
        raise CannotProve("nothing to shuffle")


def _choice(a: object, size: object = None, replace: object = True, p: object = None) -> Array:
    if p is not None or size is None:
        raise CannotProve("probabilities, which are looked at")
    shape = as_shape(size)
    if not isinstance(a, Array) and type(a) is not int:
        raise CannotProve(f"a population of {type(a).__name__}")
    population = a.size if isinstance(a, Array) else a
    if population <= 0 or (isinstance(a, Array) and a.ndim != 1):
        raise CannotProve("other than a vector, or nothing to choose from")
    if not as_bool(replace) and population < prod(shape):
        words = "Cannot take a larger sample than population when 'replace=False'"
        raise refusal(ValueError, words)
    return new(shape, a.dtype if isinstance(a, Array) else INT64)


_register("permutation", _permutation)
_register("shuffle", _shuffle)
_register("choice", _choice)


def _shares(*values: object) -> list[float]:
    """Return host numbers."""
    numbers = [float(value) for value in values if is_real(value)]
    if len(numbers) < len(values):
        raise CannotProve("a parameter that is looked at")
    return numbers


def _logseries(p: object, size: object = None, dtype: object = "l") -> Array:
    if not 0 < _shares(p)[0] < 1 or as_dtype(dtype).char not in "il":
        raise CannotProve("a parameter that CuPy refuses, or another dtype")
    return new(() if size is None else as_shape(size), as_dtype(dtype))


def _negative_binomial(n: object, p: object, size: object = None, dtype: object = int) -> Array:
    count, share = _shares(n, p)
    if count <= 0 or not 0 < share < 1 or as_dtype(dtype).char not in "il":
        raise CannotProve("parameters that CuPy refuses, or another dtype")
    return new(() if size is None else as_shape(size), as_dtype(dtype))


def _triangular(left: object, mode: object, right: object, size: object = None, dtype: object = float) -> Array:
    first, middle, last = _shares(left, mode, right)
    if not first <= middle <= last or first == last:
        raise CannotProve("parameters that CuPy refuses")
    return _sample(size, dtype)


def _dirichlet(alpha: object, size: object = None, dtype: object = float) -> Array:
    given = array(alpha)
    if given.ndim == 0 or given.size == 0 or given.dtype.char not in "fdl" or as_dtype(dtype).char not in _REAL:
        raise CannotProve("other than an array of reals")
    if size is not None and not isinstance(size, (int, tuple)):
        raise CannotProve("an unusual size")
    rows = () if size is None else (size,) if isinstance(size, int) else size
    return new(as_shape((*rows, *given.shape)), as_dtype(dtype))


_register("logseries", _logseries)
_register("negative_binomial", _negative_binomial)
_register("triangular", _triangular)
_register("dirichlet", _dirichlet)


@rule("cupy.random.RandomState.tomaxint")
def tomaxint(state: object, size: object = None) -> Array:
    """As CuPy."""
    return new(() if size is None else as_shape(size), INT64)
