"""What kernels tell of the C++ texts that were generated for them. Warnings are those of CuPy 14.2."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from typing import Any


class CachedCodes(ABC):
    """A kernel whose C++ text is generated anew for each combination of types."""

    @abstractmethod
    def _codes(self) -> dict[Any, str]:
        """Return the texts so far, by the types of the arguments."""

    @property
    def cached_codes(self) -> dict[Any, str]:
        """The generated C++ texts, by the types of the arguments."""
        codes = self._codes()
        if not codes:
            warnings.warn(
                "No codes are cached because compilation is deferred until the first function call.", stacklevel=2
            )
        return codes

    @property
    def cached_code(self) -> str:
        """The first of :attr:`cached_codes`."""
        codes = self.cached_codes
        if len(codes) > 1:
            warnings.warn(
                "The input types of the kernel could not be inferred. Please use `.cached_codes` instead.", stacklevel=2
            )
        return next(iter(codes.values()))
