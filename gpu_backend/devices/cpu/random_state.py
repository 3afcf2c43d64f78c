"""CuPy's ``RandomState`` on NumPy's generators: the same distributions, but a seed gives other values than cuRAND's."""

from __future__ import annotations

import hashlib
import math
import secrets
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from gpu_backend.devices.cpu.arrays import Array, DType, in_c_order, is_scalar
from gpu_backend.devices.cpu.call import guarded_methods
from gpu_backend.devices.cpu.creation import as_shape
from gpu_backend.devices.cpu.memory import LEDGER

#: Of fewer numbers a whole permutation is made: half a megabyte.
_MANY = 1 << 16


def float_dtype(dtype: DTypeLike) -> DType:
    """Return ``dtype`` if samples can have it.

    Raises
    ------
    TypeError
        If it is neither float32 nor float64.
    """
    chosen = np.dtype(dtype)
    if chosen.char not in "fd":
        raise TypeError("cupy.random only supports float32 and float64")
    return chosen


def seed_number(seed: object) -> int:
    """Return the 64-bit number that ``seed`` (None, an int, or an array by its bytes) stands for."""
    if seed is None:
        return secrets.randbits(64)
    if isinstance(seed, np.ndarray):
        data = in_c_order(seed).tobytes()
        return int(hashlib.md5(data, usedforsecurity=False).hexdigest()[:16], 16)
    value = np.asarray(seed)
    if value.dtype.kind not in "biu":
        raise TypeError("Seed must be an integer.")
    number = int(value)
    if not 0 <= number < 2**64:
        raise ValueError("Seed must be an integer between 0 and 2**64 - 1")
    return number


def require_room(size: object, dtype: DType) -> None:
    """Ask for the memory of ``size`` samples before they are drawn."""
    if size is not None:
        LEDGER.require(math.prod(as_shape(size)) * dtype.itemsize)


@guarded_methods
class RandomState:
    """A stream of random numbers, as ``cupy.random.RandomState``.

    Parameters
    ----------
    seed
        None for one that differs each time, an int below ``2**64``, or an array.
    method
        Ignored: which of cuRAND's generators to use.
    """

    def __init__(self, seed: object = None, method: object = None) -> None:
        self.method = method
        self.seed(seed)

    def seed(self, seed: object = None) -> None:
        """Start the stream anew from ``seed``."""
        self._rk_seed = seed_number(seed)
        self._stream = np.random.Generator(np.random.PCG64(self._rk_seed))

    def _sample(self, method: str, parameters: tuple[object, ...], size: object, dtype: DTypeLike) -> Array:
        chosen = np.dtype(dtype)
        require_room(size, np.dtype(np.float64))
        values = getattr(self._stream, method)(*parameters, size=size)
        return np.asarray(values).astype(chosen, copy=False)

    def _float(self, method: str, parameters: tuple[object, ...], size: object, dtype: DTypeLike) -> Array:
        return self._sample(method, parameters, size, float_dtype(dtype))

    # Uniform and normal

    def random_sample(self, size: Any = None, dtype: DTypeLike = float) -> Array:
        chosen = float_dtype(dtype)
        require_room(size, chosen)
        return np.asarray(self._stream.random(() if size is None else size, dtype=chosen))

    def rand(self, *size: int, dtype: DTypeLike = float) -> Array:
        return self.random_sample(size, dtype)

    def randn(self, *size: int, dtype: DTypeLike = float) -> Array:
        return self.normal(0.0, 1.0, size, dtype)

    def uniform(self, low: ArrayLike = 0.0, high: ArrayLike = 1.0, size: Any = None, dtype: DTypeLike = float) -> Array:
        chosen = float_dtype(dtype)
        if size is None:
            size = np.broadcast_shapes(np.shape(low), np.shape(high))
        width = np.asarray(high) - np.asarray(low)
        return np.asarray(self.random_sample(size, chosen) * width + low).astype(chosen, copy=False)

    def standard_normal(self, size: Any = None, dtype: DTypeLike = float) -> Array:
        chosen = float_dtype(dtype)
        require_room(size, chosen)
        return np.asarray(self._stream.standard_normal(() if size is None else size, dtype=chosen))

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None, dtype: DTypeLike = float) -> Array:
        chosen = float_dtype(dtype)
        if size is None:
            size = np.broadcast_shapes(np.shape(loc), np.shape(scale))
        return np.asarray(self.standard_normal(size, chosen) * scale + loc).astype(chosen, copy=False)

    # Other continuous distributions

    def beta(self, a: object, b: object, size: object = None, dtype: DTypeLike = float) -> Array:
        return self._sample("beta", (a, b), size, dtype)

    def chisquare(self, df: object, size: object = None, dtype: DTypeLike = float) -> Array:
        return self._sample("chisquare", (df,), size, dtype)

    def dirichlet(self, alpha: ArrayLike, size: Any = None, dtype: DTypeLike = float) -> Array:
        return self._sample("dirichlet", (np.atleast_1d(alpha),), size, dtype)

    def exponential(self, scale: ArrayLike = 1.0, size: Any = None, dtype: DTypeLike = float) -> Array:
        if (np.asarray(scale) < 0).any():
            raise ValueError("scale < 0")
        if size is None:
            size = np.shape(scale)
        return np.asarray(self.standard_exponential(size, dtype) * scale).astype(dtype, copy=False)

    def f(self, dfnum: object, dfden: object, size: object = None, dtype: DTypeLike = float) -> Array:
        return self._sample("f", (dfnum, dfden), size, dtype)

    def gamma(self, shape: object, scale: object = 1.0, size: object = None, dtype: DTypeLike = float) -> Array:
        return self._sample("gamma", (shape, scale), size, dtype)

    def gumbel(self, loc: object = 0.0, scale: object = 1.0, size: object = None, dtype: DTypeLike = float) -> Array:
        return self._float("gumbel", (loc, scale), size, dtype)

    def laplace(self, loc: object = 0.0, scale: object = 1.0, size: object = None, dtype: DTypeLike = float) -> Array:
        return self._float("laplace", (loc, scale), size, dtype)

    def logistic(self, loc: object = 0.0, scale: object = 1.0, size: object = None, dtype: DTypeLike = float) -> Array:
        return self._float("logistic", (loc, scale), size, dtype)

    def lognormal(
        self, mean: object = 0.0, sigma: object = 1.0, size: object = None, dtype: DTypeLike = float
    ) -> Array:
        return self._float("lognormal", (mean, sigma), size, dtype)

    def multivariate_normal(
        self,
        mean: Any,
        cov: Any,
        size: Any = None,
        check_valid: Literal["warn", "raise", "ignore"] = "ignore",
        tol: float = 1e-08,
        method: Literal["svd", "eigh", "cholesky"] = "cholesky",
        dtype: DTypeLike = float,
    ) -> Array:
        chosen = float_dtype(dtype)
        if np.ndim(mean) != 1:
            raise ValueError("mean must be 1 dimensional")
        if np.ndim(cov) != 2 or np.shape(cov)[0] != np.shape(cov)[1]:
            raise ValueError("cov must be 2 dimensional and square")
        if np.shape(mean)[0] != np.shape(cov)[0]:
            raise ValueError("mean and cov must have same length")
        values = self._stream.multivariate_normal(
            mean,
            cov,
            size,
            check_valid=check_valid,
            tol=tol,
            method=method,
        )
        return values.astype(chosen, copy=False)

    def noncentral_chisquare(self, df: object, nonc: object, size: object = None, dtype: DTypeLike = float) -> Array:
        return self._sample("noncentral_chisquare", (df, nonc), size, dtype)

    def noncentral_f(
        self, dfnum: object, dfden: object, nonc: object, size: object = None, dtype: DTypeLike = float
    ) -> Array:
        return self._sample("noncentral_f", (dfnum, dfden, nonc), size, dtype)

    def pareto(self, a: object, size: object = None, dtype: DTypeLike = float) -> Array:
        return self._float("pareto", (a,), size, dtype)

    def power(self, a: object, size: object = None, dtype: DTypeLike = float) -> Array:
        return self._float("power", (a,), size, dtype)

    def rayleigh(self, scale: object = 1.0, size: object = None, dtype: DTypeLike = float) -> Array:
        return self._float("rayleigh", (scale,), size, dtype)

    def standard_cauchy(self, size: object = None, dtype: DTypeLike = float) -> Array:
        return self._sample("standard_cauchy", (), size, dtype)

    def standard_exponential(self, size: object = None, dtype: DTypeLike = float) -> Array:
        return self._float("standard_exponential", (), size, dtype)

    def standard_gamma(self, shape: object, size: object = None, dtype: DTypeLike = float) -> Array:
        return self._sample("standard_gamma", (shape,), size, dtype)

    def standard_t(self, df: object, size: object = None, dtype: DTypeLike = float) -> Array:
        return self._sample("standard_t", (df,), size, dtype)

    def triangular(
        self, left: object, mode: object, right: object, size: object = None, dtype: DTypeLike = float
    ) -> Array:
        return self._float("triangular", (left, mode, right), size, dtype)

    def vonmises(self, mu: object, kappa: object, size: object = None, dtype: DTypeLike = float) -> Array:
        return self._sample("vonmises", (mu, kappa), size, dtype)

    def wald(self, mean: object, scale: object, size: object = None, dtype: DTypeLike = float) -> Array:
        return self._float("wald", (mean, scale), size, dtype)

    def weibull(self, a: object, size: object = None, dtype: DTypeLike = float) -> Array:
        return self._float("weibull", (a,), size, dtype)

    # Discrete distributions

    def binomial(self, n: object, p: object, size: object = None, dtype: DTypeLike = int) -> Array:
        return self._sample("binomial", (n, p), size, dtype)

    def geometric(self, p: ArrayLike, size: Any = None, dtype: DTypeLike = "l") -> Array:
        # CuPy asks nothing of p: whatever is not below one is sure to succeed at once.
        return self._sample("geometric", (np.clip(p, np.finfo(float).tiny, 1.0),), size, dtype)

    def hypergeometric(
        self, ngood: object, nbad: object, nsample: object, size: object = None, dtype: DTypeLike = "l"
    ) -> Array:
        for name, value, least in (("ngood", ngood, 0), ("nbad", nbad, 0), ("nsample", nsample, 1)):
            if isinstance(value, (int, float)) and value < least:
                raise ValueError(f"{name} < {least}")
        return self._sample("hypergeometric", (ngood, nbad, nsample), size, dtype)

    def logseries(self, p: object, size: object = None, dtype: DTypeLike = "l") -> Array:
        if (np.asarray(p) <= 0).any():
            raise ValueError("p <= 0.0")
        if (np.asarray(p) >= 1).any():
            raise ValueError("p >= 1.0")
        return self._sample("logseries", (p,), size, dtype)

    def negative_binomial(self, n: object, p: object, size: object = None, dtype: DTypeLike = int) -> Array:
        return self._sample("negative_binomial", (n, p), size, dtype)

    def poisson(self, lam: object = 1.0, size: object = None, dtype: DTypeLike = "l") -> Array:
        if lam is None:
            raise ValueError("Unsupported dtype object")
        return self._sample("poisson", (lam,), size, dtype)

    def zipf(self, a: object, size: object = None, dtype: DTypeLike = int) -> Array:
        return self._sample("zipf", (a,), size, dtype)

    def tomaxint(self, size: object = None) -> Array:
        return self.randint(0, np.iinfo(np.int64).max, () if size is None else size)

    def randint(self, low: Any, high: Any = None, size: Any = None, dtype: DTypeLike = int) -> Array:
        chosen = np.dtype(dtype)
        if not is_scalar(low) and not isinstance(low, int):
            low, high = (np.zeros_like(low), low) if high is None else (low, high)
            values = self._stream.integers(low, high, size, dtype=np.int64)
            return np.asarray(values).astype(chosen, copy=False)
        first, last = (0, int(low) - 1) if high is None else (int(low), int(high) - 1)
        if first > last:
            raise ValueError("low >= high")
        info = np.iinfo(chosen)
        if first < info.min:
            raise ValueError(f"low is out of bounds for {chosen.name}")
        if last > info.max:
            raise ValueError(f"high is out of bounds for {chosen.name}")
        require_room(size, chosen)
        return np.asarray(self._stream.integers(first, last, size, dtype=chosen, endpoint=True))

    # Samples of arrays

    def choice(self, a: object, size: object = None, replace: bool = True, p: object = None) -> Array:
        population = _population(a)
        count = population if isinstance(population, int) else len(population)
        weights = None if p is None else _weights(np.asarray(p), count)
        if size is None:
            raise NotImplementedError("choice() without specifying size is not supported yet")
        shape = as_shape(size)
        wanted = math.prod(shape)
        if count == 0 and wanted:
            raise ValueError("a cannot be empty unless no samples are taken")
        if not replace:
            if weights is not None:
                raise NotImplementedError
            if count < wanted:
                raise ValueError("Cannot take a larger sample than population when 'replace=False'")
            index = self._few_of_many(count, wanted).reshape(shape)
        elif weights is not None:
            cumulative = weights.cumsum()
            cumulative /= cumulative[-1]
            index = np.asarray(cumulative.searchsorted(self.random_sample(shape), side="right"))
        else:
            index = np.asarray(self.randint(0, count or 1, shape))
        return index if isinstance(population, int) else np.asarray(population[index])

    def _few_of_many(self, count: int, wanted: int) -> Array:
        """Return different numbers below ``count``; of very many, without room for those that are not wanted."""
        if count > _MANY and wanted * 50 < count:
            return self._stream.choice(count, wanted, replace=False)
        return self._stream.permutation(count)[:wanted]

    def shuffle(self, a: Array) -> None:
        if not isinstance(a, np.ndarray):
            raise TypeError("The array must be cupy.ndarray")
        if a.ndim == 0:
            raise TypeError("An array whose ndim is 0 is not supported")
        a[:] = a[self._stream.permutation(len(a))]

    def permutation(self, a: Any) -> Array:
        if isinstance(a, (int, np.integer)):
            return self._stream.permutation(int(a))
        made: Array = a[self._stream.permutation(len(a))]
        return made


def _population(a: object) -> Any:
    if a is None:
        raise ValueError("a must be 1-dimensional or an integer")
    if isinstance(a, np.ndarray) and a.ndim == 0:
        raise NotImplementedError
    if isinstance(a, (int, np.integer)):
        if a < 0:
            raise ValueError("a must be greater than or equal to 0")
        return int(a)
    population = np.asarray(a)
    if population.ndim != 1:
        raise ValueError("a must be 1-dimensional or an integer")
    return population


def _weights(p: Array, count: int) -> Array:
    if p.ndim != 1:
        raise ValueError("p must be 1-dimensional")
    if len(p) != count:
        raise ValueError("a and p must have same size")
    if not (p >= 0).all():
        raise ValueError("probabilities are not non-negative")
    if not np.allclose(p.sum(), 1):
        raise ValueError("probabilities do not sum to 1")
    return p.astype(float)
