"""User kernels: ``ElementwiseKernel``, ``ReductionKernel``, ``RawKernel``, ``RawModule``.

The source goes to the executor once, by its constructor; calls then name the handle.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kernelproxy import dispatch, streams
from kernelproxy.array_core import ArrayCore
from kernelproxy.infer import kernels as proofs
from kernelproxy.infer.outcome import Unproved
from kernelproxy.remote_object import RemoteObject


class _ShapedKernel(RemoteObject):
    """A kernel whose outputs follow from its parameters and arguments."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Construct the kernel in the executor; a malformed parameter list raises here."""
        made = dispatch.call(cls._qualname, args, kwargs)
        object.__setattr__(made, "_definition", (args, kwargs))
        object.__setattr__(made, "_compiled", set())
        return made

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Launch. The first launch with each kind of arguments compiles, so it is waited for."""
        args, kwargs = tuple(args), dict(kwargs)
        proof = proofs.result(self._qualname, self._definition, dispatch.layouts(args), dispatch.layouts(kwargs))
        kinds = tuple(_kind(one) for one in (*args, *kwargs.values()))
        if isinstance(proof, Unproved) or kinds not in self._compiled:
            result = dispatch.ask_object(".call", self, *args, **kwargs)
            self._compiled.add(kinds)
            return result
        return dispatch.run_proved(".call", (self, *args), kwargs, proof)


class ElementwiseKernel(_ShapedKernel):
    """A kernel applied to every element; parameters as in CuPy."""

    _qualname = "cupy.ElementwiseKernel"
    __module__ = "cupy"


class ReductionKernel(_ShapedKernel):
    """A kernel that reduces; parameters as in CuPy."""

    _qualname = "cupy.ReductionKernel"
    __module__ = "cupy"


class RawKernel(RemoteObject):
    """A CUDA kernel launched with a grid of blocks; parameters as in CuPy."""

    _qualname = "cupy.RawKernel"
    __module__ = "cupy"
    _launched = False

    def __call__(self, grid: Any, block: Any, args: Any, *, shared_mem: int = 0, **kwargs: Any) -> None:
        """Launch. Returns nothing; the first launch compiles, so it is waited for."""
        stream = kwargs.pop("stream", None)
        before = streams.set_current(stream) if stream is not None else None
        try:
            self._launch((self, grid, block, tuple(args)), {"shared_mem": shared_mem, **kwargs})
        finally:
            if stream is not None:
                streams.set_current(before)

    def _launch(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if self._launched:
            dispatch.run_proved(".call", args, kwargs, None)
            return
        dispatch.ask_object(".call", *args, **kwargs)
        object.__setattr__(self, "_launched", True)


class RawModule(RemoteObject):
    """A CUDA module compiled from source; parameters as in CuPy. A file given by ``path`` is this machine's."""

    _qualname = "cupy.RawModule"
    __module__ = "cupy"

    def __new__(cls, *, code: str | None = None, path: str | None = None, **kwargs: Any) -> Any:
        """Construct the module in the executor."""
        if path is not None:
            code = Path(path).read_text()
        return dispatch.call(cls._qualname, (), {"code": code, **kwargs})

    def get_function(self, name: str) -> RawKernel:
        """Return the kernel called ``name``; a name expression if the module was made with them."""
        found: RawKernel = dispatch.ask_object(".method", self, "get_function", name)
        return found

    def get_global(self, name: str) -> Any:
        """Return the pointer to the device variable ``name``."""
        return dispatch.ask_object(".method", self, "get_global", name)


def _kind(argument: Any) -> Any:
    """Return what the compiled code depends on."""
    if not isinstance(argument, ArrayCore):
        return type(argument)
    layout = argument._layout
    return layout.dtype, layout.ndim, layout.c_contiguous  # a raw parameter is declared with all three
