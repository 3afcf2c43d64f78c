"""Random calls on the CuPy surface, by family. Importing this registers all templates."""

from __future__ import annotations

from tests.conformance.infer_calls import creation, elementwise, indexing, manipulation, reductions
from tests.conformance.infer_calls.draw import TEMPLATES, Array, Call, Draw, calls

__all__ = [
    "TEMPLATES", "Array", "Call", "Draw", "calls", "creation", "elementwise", "indexing", "manipulation", "reductions",
]  # fmt: skip
