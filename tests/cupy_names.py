"""CuPy's namespace as the notebook has it, without importing anything under CuPy's name."""

from __future__ import annotations

from typing import Any

from kernelproxy.namespace.names import make

_MODULES = ("linalg", "cublas", "fft", "random")


class CuPy:
    """Stands for ``import cupy as cp``; what was asked for once is there at once."""

    def __init__(self, name: str = "cupy") -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        below = f"{self._name}.{name}"
        found = CuPy(below) if name in _MODULES else make(below)
        setattr(self, name, found)
        return found
