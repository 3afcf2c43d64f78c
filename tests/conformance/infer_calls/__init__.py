"""Random calls on the CuPy surface, by family. Importing this registers all templates."""

from __future__ import annotations

from tests.conformance.infer_calls import (
    algebra,
    analysis,
    creation,
    elementwise,
    images,
    indexing,
    kernels,
    manipulation,
    random,
    reductions,
    scipy,
)
from tests.conformance.infer_calls.draw import TEMPLATES, Array, Call, Draw, Made, calls
from tests.conformance.infer_calls.kernels import Launch, launches

__all__ = [
    "TEMPLATES",
    "Array",
    "Call",
    "Draw",
    "Launch",
    "Made",
    "algebra",
    "analysis",
    "calls",
    "creation",
    "elementwise",
    "images",
    "indexing",
    "kernels",
    "launches",
    "manipulation",
    "random",
    "reductions",
    "scipy",
]  # fmt: skip
