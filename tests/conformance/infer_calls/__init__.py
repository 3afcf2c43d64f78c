"""Random calls on the CuPy surface, by family. Importing this registers all templates."""

from __future__ import annotations

from tests.conformance.infer_calls import (
    algebra,
    analysis,
    creation,
    elementwise,
    indexing,
    manipulation,
    random,
    reductions,
)
from tests.conformance.infer_calls.draw import TEMPLATES, Array, Call, Draw, calls

__all__ = [
    "TEMPLATES",
    "Array",
    "Call",
    "Draw",
    "algebra",
    "analysis",
    "calls",
    "creation",
    "elementwise",
    "indexing",
    "manipulation",
    "random",
    "reductions",
]  # fmt: skip
