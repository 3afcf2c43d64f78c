"""What CuPy's kernels call the elements of arrays."""

from __future__ import annotations

__all__ = ["C_TYPES"]

#: C++ types by the characters of NumPy's dtypes. Source: ``get_typename`` in ``cupy/_core/_scalar.pyx``, CuPy 14.2.
C_TYPES = {
    "?": "bool",
    "b": "signed char",
    "h": "short",
    "i": "int",
    "l": "long long",
    "q": "long long",
    "B": "unsigned char",
    "H": "unsigned short",
    "I": "unsigned int",
    "L": "unsigned long long",
    "Q": "unsigned long long",
    "e": "float16",
    "f": "float",
    "d": "double",
    "F": "thrust::complex<float>",
    "D": "thrust::complex<double>",
}
