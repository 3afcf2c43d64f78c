"""Draws of random numbers: ops that make new arrays from a state that goes on, and leave what they are given alone.

A method of a state or a generator is one of them under the name of its class, as other methods are not: what it gives
depends on nothing that rules know of the object.
"""

from __future__ import annotations

from functools import cache

__all__ = ["GENERATOR", "STATE", "is_draw", "most_operands"]

_MODULE = "cupy.random"
STATE, GENERATOR = f"{_MODULE}.RandomState", f"{_MODULE}.Generator"
_DRAWN = frozenset(
    """beta binomial chisquare dirichlet exponential f gamma geometric gumbel hypergeometric integers laplace logistic
    lognormal logseries negative_binomial noncentral_chisquare noncentral_f normal pareto poisson power rand randint
    randn random random_sample rayleigh standard_cauchy standard_exponential standard_gamma standard_normal standard_t
    tomaxint triangular uniform vonmises wald weibull zipf""".split()
)
#: Most arguments, the object among them, with which none is an array to draw into.
_MOST_OPERANDS = {_MODULE: 8, STATE: 8, GENERATOR: 3}


@cache
def is_draw(name: str) -> bool:
    """Tell whether the op ``name`` draws random numbers."""
    owner, _, last = name.rpartition(".")
    return owner in _MOST_OPERANDS and last in _DRAWN


def most_operands(name: str) -> int:
    """Return with how many arguments the draw ``name`` makes new memory at most; the next could be for its result."""
    return _MOST_OPERANDS[name.rpartition(".")[0]]
