"""A random program: statements as a user writes them, and the shapes that they are run with."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import CodeType
from typing import Any

import msgspec
import numpy as np

from tests.cupy_names import CuPy
from tests.fuzz.given import GIVEN, given

__all__ = ["Run", "Structure", "quiet"]

_SOURCE = """
extern "C" __global__ void step(const double* x, double* y, int n, float by) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] += by * x[i];
}
"""
#: What statements may use besides the arrays; made where one does.
_TOOLS = {
    "raw": lambda cp: cp.RawKernel(_SOURCE, "step"),
    "scaled": lambda cp: cp.ElementwiseKernel("T x, T y, T k", "T z", "z = x * k - y", "scaled"),
    "doubled": lambda cp: cp.ElementwiseKernel("", "T x", "x = x + x", "doubled"),
    "squares": lambda cp: cp.ReductionKernel("T x", "T y", "x * x", "a + b", "y = a", "0", "squares"),
    "rng": lambda cp: cp.random.default_rng(11),
}  # type: dict[str, Callable[[Any], Any]]
_cupy = CuPy()


class Structure(msgspec.Struct, kw_only=True):
    """One program.

    Attributes
    ----------
    seed
        Of what lies in the arrays, and of how the ops are bundled.
    dtypes
        Of the arrays, by name.
    statements
        In order; they are repeated, ``j`` being the number of the repeat.
    shapes
        What ``n`` and ``m`` are: all is done for each pair.
    repeats
        How often the statements are run with each shape.
    refreshed, read
        Before which repeats the arrays are uploaded anew, and behind which all is read.
    learns
        Whether the executor learns what it may while the notebook pauses; else only what comes often.
    """

    seed: int
    dtypes: dict[str, str]
    statements: list[str]
    shapes: list[tuple[int, int]]
    repeats: int
    refreshed: list[int]
    read: list[int]
    learns: bool

    def uses(self, name: str) -> bool:
        """Tell whether any statement says ``name``."""
        return any(re.search(rf"\b{re.escape(name)}\b", one) for one in self.statements)

    def lines(self) -> Iterator[str]:
        """Yield what a person needs to know of it."""
        dtypes = " ".join(f"{name}={char}" for name, char in self.dtypes.items() if self.uses(name))
        yield f"n, m in {self.shapes}; {self.repeats} repeats, new arrays before {self.refreshed}; {dtypes}"
        yield from (f"    {one}" for one in self.statements)


class Run:
    """Runs a structure in this process's notebook.

    Attributes
    ----------
    scope
        What statements see: what they have made lies there too.
    failed
        How many raised something. What the user would see of it is in the executor's answers.
    """

    def __init__(self, structure: Structure) -> None:
        self.structure = structure
        self.failed = 0
        self.scope: dict[str, Any] = {"cp": _cupy, "np": np, "nan": np.nan, "inf": np.inf, "held": []}
        self.scope |= {name: make(_cupy) for name, make in _TOOLS.items() if structure.uses(name)}
        if structure.uses("cp.random"):
            _cupy.random.seed(structure.seed & 0xFFFF)

    def run(self) -> None:
        """Run all of it."""
        codes = [compile(one, f"<statement {number}>", "exec") for number, one in enumerate(self.structure.statements)]
        for n, m in self.structure.shapes:
            self.scope.update(n=n, m=m)
            for repeat in range(self.structure.repeats):
                if repeat in self.structure.refreshed or not repeat:
                    self.refresh(n, m, repeat)
                self._repeat(repeat, codes)
            for name in self.names():
                del self.scope[name]

    def refresh(self, n: int, m: int, repeat: int) -> None:
        """Upload the arrays; what is made later lies elsewhere than it would have."""
        self.scope["held"][repeat % 3 :] = [_cupy.zeros(1 + 997 * repeat % 4093)]
        for name in filter(self.structure.uses, GIVEN):
            self.scope[name] = _cupy.asarray(given(name, self.structure.seed, self.structure.dtypes, n, m, repeat))

    def names(self) -> list[str]:
        """Return the names of all arrays that are there."""
        return sorted(name for name in self.scope if name in GIVEN or (name[0] == "t" and name[1:].isdigit()))

    def attempt(self, act: Callable[[], object]) -> bool:
        """Do something; return whether it went well."""
        try:
            act()
        except Exception:  # whatever a user's program raises: the next statement comes all the same
            self.failed += 1
            return False
        return True

    def _repeat(self, repeat: int, codes: Sequence[CodeType]) -> None:
        self.scope["j"] = repeat
        for code in codes:
            self.attempt(lambda code=code: exec(code, self.scope))  # type: ignore[misc]
        if repeat in self.structure.read or repeat == self.structure.repeats - 1:
            for name in self.names():
                self.attempt(self.scope[name].get)


@contextmanager
def quiet() -> Iterator[None]:
    """Let nothing be said of numbers that overflow, and the like: most of these do."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield
