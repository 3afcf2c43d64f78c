"""CuPy's ``Generator`` and its bit generators on NumPy's."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from gpu_backend.devices.cpu.arrays import Array, DType, is_scalar
from gpu_backend.devices.cpu.call import guarded_methods
from gpu_backend.devices.cpu.creation import as_shape
from gpu_backend.devices.cpu.random_state import require_room, seed_number
from gpu_backend.devices.cpu.table import define, define_value


@guarded_methods
class BitGenerator:
    """A source of random bits. Use one of its subclasses.

    Parameters
    ----------
    seed
        None, an int, an array of ints or a ``numpy.random.SeedSequence``.
    """

    def __init__(self, seed: object = None) -> None:
        if seed is None:
            seed = seed_number(None)
        sequence = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(_entropy(seed))
        self._bits = np.random.Philox(sequence)

    def random_raw(self, size: object = None, output: bool = True) -> Array | None:
        """Return 32-bit numbers, or None if ``output`` is False."""
        shape = () if size is None else as_shape(size)
        values = np.asarray(self._bits.random_raw(math.prod(shape)))
        return (values >> np.uint64(32)).astype(np.uint32).reshape(shape) if output else None


def _entropy(seed: object) -> Any:
    if isinstance(seed, np.ndarray):
        return [int(value) for value in seed.ravel()]
    return seed


class XORWOW(BitGenerator):
    """Named as CuPy's; the bits are Philox bits on this device."""

    def __init__(self, seed: object = None, *, size: int = -1) -> None:
        super().__init__(seed)


class MRG32k3a(XORWOW):
    """Named as CuPy's; the bits are Philox bits on this device."""


class Philox4x3210(XORWOW):
    """Named as CuPy's; the bits are Philox bits on this device."""


@guarded_methods
class Generator:
    """Distributions over a bit generator, as ``cupy.random.Generator``."""

    def __init__(self, bit_generator: BitGenerator) -> None:
        if not isinstance(bit_generator, BitGenerator):
            raise TypeError("bit_generator must be a cupy.random.BitGenerator")
        self.bit_generator = bit_generator

    @property
    def _stream(self) -> np.random.Generator:
        """NumPy's distributions over the bits; programs set ``bit_generator`` anew to seed a generator again."""
        bits = self.bit_generator._bits
        if self._over is not bits:
            self._over, self._distributions = bits, np.random.Generator(bits)
        return self._distributions

    _over: Any = None
    _distributions: np.random.Generator

    def _draw(self, method: str, *parameters: object, size: object, dtype: Any = None) -> Array:
        require_room(size, np.dtype(np.float64))
        values = np.asarray(getattr(self._stream, method)(*parameters, size=size))
        return values if dtype is None else values.astype(dtype, copy=False)

    def _into(self, method: str, size: object, dtype: DTypeLike, out: Array | None) -> Array:
        chosen = np.dtype(dtype)
        if chosen.char not in "fd":
            raise TypeError(f"Unsupported dtype {chosen} for {method}")
        if out is not None:
            return _filled(self, method, size, chosen, out)
        require_room(size, chosen)
        return np.asarray(getattr(self._stream, method)(() if size is None else size, dtype=chosen))

    def random(self, size: object = None, dtype: DTypeLike = np.float64, out: Array | None = None) -> Array:
        return self._into("random", size, dtype, out)

    def standard_normal(self, size: object = None, dtype: DTypeLike = np.float64, out: Array | None = None) -> Array:
        return self._into("standard_normal", size, dtype, out)

    def standard_exponential(
        self, size: object = None, dtype: DTypeLike = np.float64, method: str = "inv", out: Array | None = None
    ) -> Array:
        if method == "zig":
            raise NotImplementedError("Ziggurat method is not supported")
        return self._into("standard_exponential", size, dtype, out)

    def standard_gamma(
        self, shape: object, size: object = None, dtype: DTypeLike = np.float64, out: Array | None = None
    ) -> Array:
        if np.dtype(dtype).char not in "fd":
            raise TypeError(f"Unsupported dtype {np.dtype(dtype)} for standard_gamma")
        values = self._draw("standard_gamma", shape, size=out.shape if out is not None else size, dtype=dtype)
        if out is None:
            return values
        _check_out(size, np.dtype(dtype), out)
        out[...] = values
        return out

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None, dtype: DTypeLike = np.float64) -> Array:
        if size is None:
            size = np.broadcast_shapes(np.shape(low), np.shape(high))
        return np.asarray(low + self.random(size, dtype) * (np.asarray(high) - low)).astype(dtype, copy=False)

    def integers(
        self, low: Any, high: Any = None, size: Any = None, dtype: DTypeLike = np.int64, endpoint: bool = False
    ) -> Array:
        first, last = (0, low) if high is None else (low, high)
        last = last if endpoint else last - 1
        if is_scalar(first) and is_scalar(last):
            if first > last:
                raise ValueError("low >= high")
            info = np.iinfo(dtype)
            if first < info.min:
                raise ValueError(f"low is out of bounds for {np.dtype(dtype).name}")
            if last > info.max:
                raise ValueError(f"high is out of bounds for {np.dtype(dtype).name}")
        require_room(size, np.dtype(dtype))
        return np.asarray(self._stream.integers(first, last, size, dtype=dtype, endpoint=True))

    def beta(self, a: object, b: object, size: object = None, dtype: DTypeLike = np.float64) -> Array:
        return self._draw("beta", a, b, size=size, dtype=dtype)

    def binomial(self, n: object, p: object, size: object = None) -> Array:
        return self._draw("binomial", n, p, size=size, dtype=np.int64)

    def chisquare(self, df: object, size: object = None) -> Array:
        return self._draw("chisquare", df, size=size)

    def dirichlet(self, alpha: object, size: object = None) -> Array:
        weights = _parameter("alpha", alpha, np.float64)
        shape = () if size is None else as_shape(size)
        drawn = self._draw("standard_gamma", weights, size=shape + weights.shape)
        made: Array = drawn / drawn.sum(axis=-1 if drawn.ndim else None, keepdims=bool(drawn.ndim))
        return made

    def exponential(self, scale: object = 1.0, size: object = None) -> Array:
        return self._draw("exponential", scale, size=size)

    def f(self, dfnum: object, dfden: object, size: object = None) -> Array:
        return self._draw("f", dfnum, dfden, size=size)

    def gamma(self, shape: object, scale: object = 1.0, size: object = None) -> Array:
        return self._draw("gamma", shape, scale, size=size)

    def geometric(self, p: object, size: object = None) -> Array:
        return self._draw("geometric", p, size=size, dtype=np.int64)

    def hypergeometric(self, ngood: Any, nbad: Any, nsample: Any, size: Any = None) -> Array:
        given = {"ngood": ngood, "nbad": nbad, "nsample": nsample}
        for name, value in given.items():
            if type(value) in (float, int) and value < 0:
                raise ValueError(f"{name} < 0")
        good, bad, drawn = (_parameter(name, value, np.int64) for name, value in given.items())
        drawn = np.minimum(drawn, good + bad)  # who draws more than there is has drawn all
        return self._draw("hypergeometric", good, bad, drawn, size=size, dtype=np.int64)

    def logseries(self, p: object, size: object = None) -> Array:
        return self._draw("logseries", p, size=size, dtype=np.int64)

    def poisson(self, lam: object = 1.0, size: object = None) -> Array:
        return self._draw("poisson", lam, size=size, dtype=np.int64)

    def power(self, a: object, size: object = None) -> Array:
        return self._draw("power", a, size=size)


def _parameter(name: str, value: object, dtype: DTypeLike) -> Array:
    if not isinstance(value, np.ndarray) and type(value) not in (float, int):
        raise TypeError(f"{name} is required to be a cupy.ndarray or a scalar")
    return np.asarray(value).astype(dtype)


def _check_out(size: object, dtype: DType, out: Array) -> None:
    if size is not None and as_shape(size) != out.shape:
        raise ValueError("size must match out.shape when used together")
    if not out.flags.c_contiguous:
        raise ValueError("Supplied output array is not contiguous, writable or aligned.")
    if out.dtype != dtype:
        raise TypeError(f"Supplied output array has wrong type. Expected {dtype}, got {out.dtype}")


def _filled(generator: Generator, method: str, size: object, dtype: DType, out: Array) -> Array:
    _check_out(size, dtype, out)
    out[...] = getattr(generator._stream, method)(out.shape, dtype=dtype)
    return out


@define("cupy.random.default_rng")
def default_rng(seed: object = None) -> Generator:
    if isinstance(seed, BitGenerator):
        return Generator(seed)
    if isinstance(seed, Generator):
        return seed
    return Generator(XORWOW(seed))


for _kind in (BitGenerator, XORWOW, MRG32k3a, Philox4x3210, Generator):
    define_value(_kind, f"cupy.random.{_kind.__name__}")
