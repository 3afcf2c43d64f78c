"""``cupy.random``'s functions: methods of the one state of each device."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from gpu_backend.devices.cpu.arrays import Array
from gpu_backend.devices.cpu.random_state import RandomState
from gpu_backend.devices.cpu.several import DEVICES
from gpu_backend.devices.cpu.table import define, define_alias, define_value

#: The state that the functions draw from, by the number of the device; made on first use.
_states: dict[int, RandomState] = {}


@define("cupy.random.get_random_state")
def get_random_state() -> RandomState:
    state = _states.get(DEVICES.current)
    if state is None:
        seed = os.environ.get("CUPY_SEED")
        state = _states[DEVICES.current] = RandomState(None if seed is None else np.uint64(int(seed)))
    return state


@define("cupy.random.set_random_state")
def set_random_state(rs: RandomState) -> None:
    if not isinstance(rs, RandomState):
        raise TypeError(f"Random state must be an instance of RandomState. Actual: {type(rs)}")
    _states[DEVICES.current] = rs


@define("cupy.random.reset_states")
def reset_states() -> None:
    _states.clear()


@define("cupy.random.bytes")
def bytes_(length: int) -> bytes:
    return bytes(get_random_state()._stream.bytes(length))


@define("cupy.random.random_integers")
def random_integers(low: int, high: int | None = None, size: object = None) -> Array:
    if high is None:
        low, high = 1, low
    return get_random_state().randint(low, high + 1, size)


@define("cupy.random.multinomial")
def multinomial(n: int, pvals: Any, size: Any = None) -> Array:
    pvals = np.asarray(pvals)
    if pvals.ndim != 1:
        raise ValueError("pvals must be 1 dimensional")
    return get_random_state()._stream.multinomial(n, pvals, size)


def _of_current_state(name: str) -> Callable[..., Any]:
    def function(*args: object, **kwargs: object) -> Any:
        return getattr(get_random_state(), name)(*args, **kwargs)

    function.__name__ = name
    return function


_SAME_NAME = (
    "beta", "binomial", "chisquare", "choice", "dirichlet", "exponential", "f", "gamma", "geometric", "gumbel",
    "hypergeometric", "laplace", "logistic", "lognormal", "logseries", "multivariate_normal", "negative_binomial",
    "noncentral_chisquare", "noncentral_f", "normal", "pareto", "permutation", "poisson", "power", "rand", "randint",
    "randn", "random_sample", "rayleigh", "seed", "shuffle", "standard_cauchy", "standard_exponential",
    "standard_gamma", "standard_normal", "standard_t", "triangular", "uniform", "vonmises", "wald", "weibull", "zipf",
)  # fmt: skip

for _name in _SAME_NAME:
    define(f"cupy.random.{_name}")(_of_current_state(_name))
for _alias in ("random", "ranf", "sample"):
    define_alias(f"cupy.random.{_alias}", "cupy.random.random_sample")
define_value(RandomState, "cupy.random.RandomState")
