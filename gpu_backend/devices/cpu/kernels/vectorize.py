"""``cupy.vectorize``: a Python function of numbers, applied to every element of arrays.

Sources:
    signature, typing and what is not supported are those of CuPy 14.2
    (https://docs.cupy.dev/en/stable/reference/generated/cupy.vectorize.html).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpu_backend.devices.cpu.kernels.elementwise import ElementwiseKernel
from gpu_backend.devices.cpu.kernels.jit.function_source import FunctionSource, function_source
from gpu_backend.devices.cpu.kernels.jit.program import compile_function
from gpu_backend.devices.cpu.kernels.jit.values import Scalar, TupleOf, Type


class vectorize:
    """A function of numbers made one of arrays; compiled for each combination of argument types.

    Parameters
    ----------
    pyfunc
        A Python function, or its source.
    otypes
        Accepted; a call with it set is not supported.
    doc
        The docstring, instead of the function's.
    excluded, signature
        Not supported.
    cache
        Accepted and without meaning.

    Raises
    ------
    NotImplementedError
        If ``excluded`` or ``signature`` is given.
    """

    def __init__(
        self,
        pyfunc: Callable[..., Any] | FunctionSource,
        otypes: Any = None,
        doc: str | None = None,
        excluded: object = None,
        cache: bool = False,
        signature: object = None,
    ) -> None:
        self.pyfunc = pyfunc
        self.__doc__ = doc or pyfunc.__doc__
        self.otypes = None if otypes is None else "".join(np.dtype(kind).char for kind in otypes)
        self.excluded = excluded
        self.cache = cache
        self.signature = signature
        for name, value in (("excluded", excluded), ("signature", signature)):
            if value is not None:
                raise NotImplementedError(f"cupy.vectorize does not support `{name}` option currently.")
        self._kernels: dict[str, ElementwiseKernel] = {}

    def __call__(self, *args: object) -> Any:
        """Return the function's results on all elements of the broadcast arguments.

        Raises
        ------
        TypeError, ValueError, NameError, NotImplementedError
            If the function cannot be compiled for these types.
        """
        chars = "".join(arg.dtype.char if hasattr(arg, "dtype") else np.dtype(type(arg)).char for arg in args)
        kernel = self._kernels.get(chars)
        if kernel is None:
            kernel = self._kernels[chars] = self._compiled(chars)
        return kernel(*args)

    def _compiled(self, chars: str) -> ElementwiseKernel:
        if self.otypes is not None:
            raise NotImplementedError("cupy.vectorize does not support `otypes` option currently.")
        source = self.pyfunc if isinstance(self.pyfunc, FunctionSource) else function_source(self.pyfunc)
        types = [Scalar(np.dtype(char)) for char in chars]
        made = compile_function(source, "inline", "numpy", types)
        call = f"{made.name}({', '.join(f'in{n}' for n in range(len(types)))})"
        outputs, operation = _outputs(made.returns, call)
        inputs = ", ".join(f"{kind.dtype} in{n}" for n, kind in enumerate(types))
        preamble = f'#include "gpu/python.h"\n{made.code}'
        return ElementwiseKernel(inputs, outputs, operation, "cupy_vectorize", preamble=preamble)


def _outputs(returns: Type, call: str) -> tuple[str, str]:
    """Return output parameters and operation for a function that returns ``returns``."""
    if isinstance(returns, Scalar):
        return f"{returns.dtype} out0", f"out0 = {call}"
    if isinstance(returns, TupleOf) and all(isinstance(item, Scalar) for item in returns.items):
        names = ", ".join(f"{item.dtype} out{n}" for n, item in enumerate(returns.items))
        gets = "".join(f"out{n} = gpu::get<{n}>(_result);" for n in range(len(returns.items)))
        return names, f"auto _result = {call}; {gets}"
    raise TypeError(f"Invalid return type: {returns}")
