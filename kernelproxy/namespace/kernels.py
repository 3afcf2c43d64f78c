"""User kernels: ``ElementwiseKernel``, ``ReductionKernel``, ``RawKernel``, ``RawModule``.

The source goes to the executor once, by its constructor; calls then name the handle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TextIO, TypeGuard

import numpy as np

from gpu_backend.opstream.proof import kernels as proofs
from gpu_backend.opstream.proof.outcome import Made, Unproved
from gpu_backend.wire import values as wire
from gpu_backend.wire.errors import ErrorRecord
from kernelproxy.calls import array_core, dispatch, overrides
from kernelproxy.calls.argument_types import Extent
from kernelproxy.calls.array_core import ArrayCore
from kernelproxy.calls.each_device import OfEachDevice
from kernelproxy.calls.launches import Launch, launched, remember_launch
from kernelproxy.calls.on_stream import on_stream
from kernelproxy.calls.remote_object import RemoteObject
from kernelproxy.client import current
from kernelproxy.errors import remote_exception
from kernelproxy.stream import work

#: Forms of a launch that are remembered for one kernel.
_MOST_FORMS = 1024
#: Where the constructor of each class is told the kernel's name, and what it is if nothing is said.
_NAMES = {
    "cupy.RawKernel": (1, ""),
    "cupy.ElementwiseKernel": (3, "kernel"),
    "cupy.ReductionKernel": (6, "reduce_kernel"),
}


#: A grid and a block, as they travel.
_SentShape = tuple[wire.Tuple, wire.Tuple]


class _NamedKernel(OfEachDevice):
    """A kernel with a name, by which profilers and decorators know it like a function."""

    @property
    def __name__(self) -> str:
        return str(self.name)


def note_name(kernel: RemoteObject, name: str) -> None:
    """Remember what ``kernel`` is called, for those who wait for it."""
    session = kernel._client.opened if kernel._client is not None else None
    if session is not None:
        work.note_kernel(session.pipeline, kernel, name)


def _note_name(kernel: _NamedKernel, args: tuple[object, ...], kwargs: dict[str, object]) -> None:
    """Remember what ``kernel`` is called, for those who wait for it."""
    place, default = _NAMES[kernel._qualname]
    note_name(kernel, str(kwargs.get("name", args[place] if len(args) > place else default)))


class _ShapedKernel(_NamedKernel):
    """A kernel whose outputs follow from its parameters and arguments."""

    @classmethod
    def _make(cls, *args: Any, **kwargs: Any) -> Any:
        """Construct the kernel in the executor; a malformed parameter list raises here."""
        made = super()._make(*args, **kwargs)
        object.__setattr__(made, "_definition", (args, kwargs))
        object.__setattr__(made, "_compiled", set())
        _note_name(made, args, kwargs)
        return made

    def __reduce__(self) -> Any:
        args, kwargs = self._definition
        return self._remade(*args, **kwargs)

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """Launch. The first launch with each kind of arguments compiles, so it is waited for."""
        client = self._client
        if client is not None and client.members and (here := self._here()) is not self:
            return here(*args, **kwargs)
        if array_core.is_subclassed and (own := self._carried_out_by(args)) is not None:
            return own(*args, **kwargs)
        known = None
        if not kwargs and client is not None:
            found = launched(client, self._handle, self._wire_value(), (), args, ())
            if found is not None and not isinstance(found, Launch):
                return found[0]
            known = found
        args, kwargs = tuple(args), dict(kwargs)
        proof = proofs.result(self._qualname, self._definition, dispatch.layouts(args), dispatch.layouts(kwargs))
        kinds = tuple(kind_of(one) for one in (*args, *kwargs.values()))
        if isinstance(proof, Unproved) or kinds not in self._compiled:
            result = dispatch.ask_object(".call", self, *args, **kwargs)
            self._compiled.add(kinds)
            return result
        if known is not None:
            remember_launch(known, self._handle, proof, dispatch.largest(args, proof))
        return dispatch.run_proved(".call", (self, *args), kwargs, proof)

    def _carried_out_by(self, args: tuple[object, ...]) -> Callable[..., Any] | None:
        """Return what carries the launch out in this kernel's place, if one of ``args`` does."""
        return None


class ElementwiseKernel(_ShapedKernel):
    """A kernel applied to every element; parameters as in CuPy."""

    _qualname = "cupy.ElementwiseKernel"

    def _carried_out_by(self, args: tuple[object, ...]) -> Callable[..., Any] | None:
        return overrides.elementwise(self, args)


class ReductionKernel(_ShapedKernel):
    """A kernel that reduces; parameters as in CuPy."""

    _qualname = "cupy.ReductionKernel"


class _Compiled(OfEachDevice):
    """What is compiled of CUDA C++ at its first use, or when it is told to."""

    def compile(self, log_stream: TextIO | None = None) -> None:
        """Compile now; what the compiler prints is written to ``log_stream``."""
        log = dispatch.ask_object(".compile", self, log_stream is not None)
        if log_stream is not None:
            log_stream.write(log)


class RawKernel(_NamedKernel, _Compiled):
    """A CUDA kernel launched with a grid of blocks; parameters as in CuPy."""

    _qualname = "cupy.RawKernel"
    #: The grid and the block of the last launch that was looked at, and how they travel.
    _last_shape: tuple[Extent, Extent, _SentShape] = ((), (), (wire.Tuple(()), wire.Tuple(())))

    @classmethod
    def _make(cls, *args: Any, **kwargs: Any) -> Any:
        """Construct the kernel in the executor; it is compiled when it is first launched."""
        made = super()._make(*args, **kwargs)
        object.__setattr__(made, "_definition", (args, kwargs))
        _note_name(made, args, kwargs)
        return made

    def __call__(
        self, grid: Extent, block: Extent, args: Iterable[object], *, shared_mem: int = 0, **kwargs: Any
    ) -> None:
        """Launch. The first launch of each form is waited for: it compiles, and CUDA may refuse the form."""
        client = self._client
        if client is not None and client.members and (here := self._here()) is not self:
            here(grid, block, args, shared_mem=shared_mem, **kwargs)
            return
        args = tuple(args)
        known = None
        shape = None if shared_mem or kwargs else self._sent_shape(grid, block)
        if shape is not None and client is not None:
            found = launched(client, self._handle, self._wire_value(), (grid, block), args, shape)
            if found is not None and not isinstance(found, Launch):
                return
            known = found
        given: tuple[Any, ...] = (self, grid, block, args)
        by_value = tuple([place for place, one in enumerate(args) if _is_by_value(one)])
        stream = kwargs.pop("stream", None)
        options = {"shared_mem": shared_mem, **kwargs} if shared_mem else kwargs  # what is said costs time
        verb = ".call"
        if by_value:
            verb, given = ".launch", (*given, by_value)
        with on_stream(self._client or current(), stream):
            is_known = launch_known(self, verb, given, options, (grid, block, shared_mem, *map(kind_of, args)))
        if known is not None and is_known:
            remember_launch(known, self._handle, None, 0)

    def _sent_shape(self, grid: Extent, block: Extent) -> _SentShape | None:
        """Return how a grid and a block travel; None for what has to be looked at closely."""
        last_grid, last_block, sent = self._last_shape
        if grid is last_grid and block is last_block:  # constants of a loop are the same objects each time
            return sent
        if not (_is_shape(grid) and _is_shape(block)):
            return None
        sent = wire.Tuple(grid), wire.Tuple(block)
        object.__setattr__(self, "_last_shape", (grid, block, sent))
        return sent

    def _made_again(self) -> Any:
        if "_module" in self.__dict__:
            module, name = self._module
            return module._here().get_function(name)
        return super()._made_again()

    def __reduce__(self) -> Any:
        if "_module" in self.__dict__:
            return RawModule.get_function, self._module
        args, kwargs = self._definition
        return self._remade(*args, **kwargs)


def _is_shape(extents: object) -> TypeGuard[tuple[int, ...]]:
    return type(extents) is tuple and all(type(one) is int for one in extents)


def _is_by_value(argument: object) -> bool:
    """Tell whether ``argument`` is an array of the host; it is refused unless it has one element.

    Raises
    ------
    TypeError
        If ``argument`` is nothing that a kernel takes.
    """
    if isinstance(argument, np.ndarray):
        if argument.size != 1:
            raise TypeError(
                f"You are trying to pass a numpy.ndarray of shape {argument.shape} as a kernel parameter. Only "
                "numpy.ndarrays of size one can be passed by value. If you meant to pass a pointer to __global__ "
                "memory, you need to pass a cupy.ndarray instead."
            )
        return True
    if argument is None or isinstance(argument, (ArrayCore, RemoteObject, int, float, complex, np.generic)):
        return False
    raise TypeError(f"Unsupported type {type(argument)}")


def launch_known(
    kernel: RemoteObject, verb: str, given: tuple[object, ...], options: dict[str, object], form: tuple[object, ...]
) -> bool:
    """Launch ``kernel``: recorded if a launch of this form has succeeded before, else waited for; tell which."""
    launched = kernel.__dict__.setdefault("_launched", set())
    if form in launched:
        dispatch.run_proved(verb, given, options, None)
        return True
    dispatch.ask_object(verb, *given, **options)
    if len(launched) >= _MOST_FORMS:
        launched.clear()
    launched.add(form)
    return False


class RawModule(_Compiled):
    """A CUDA module; parameters as in CuPy. A compiled file given by ``path`` is this machine's."""

    _qualname = "cupy.RawModule"

    @classmethod
    def _make(cls, code: str | None = None, *, path: str | None = None, **kwargs: Any) -> Any:
        """Construct the module in the executor."""
        if path is None or code is not None:
            made = super()._make(code=code, path=path, **kwargs)
        else:
            made = dispatch.ask_object(".module_of_file", _contents(path), **kwargs)
        object.__setattr__(made, "_definition", ((code,), {"path": path, **kwargs}))
        return made

    def __reduce__(self) -> Any:
        args, kwargs = self._definition
        return self._remade(*args, **kwargs)

    def _made_again(self) -> Any:
        (code,), options = self._definition
        return RawModule._make(code, **options)

    def get_function(self, name: str) -> RawKernel:
        """Return the kernel called ``name``; a name expression if the module was made with them."""
        names = self.__dict__.setdefault("_functions_found", set())
        proof = Made("cupy.RawKernel") if name in names else Unproved("whether the source compiles, and has it")
        found: RawKernel = dispatch.run_proved(".method", (self, "get_function", name), {}, proof)
        names.add(name)
        object.__setattr__(found, "_module", (self, name))
        note_name(found, name)
        return found

    def get_global(self, name: str) -> Any:
        """Return the pointer to the device variable ``name``."""
        return dispatch.ask_object(".method", self._here(), "get_global", name)


def _contents(path: str) -> bytes:
    """Return the contents of a compiled file of this machine; raises what CUDA says of one that is not there."""
    try:
        return Path(path).read_bytes()
    except FileNotFoundError:
        told = f"CUDA_ERROR_FILE_NOT_FOUND: file not found: {path}"
        raise remote_exception(ErrorRecord("cupy.cuda.driver.CUDADriverError", told)) from None


def kind_of(argument: object) -> Any:
    """Return what the compiled code depends on."""
    if not isinstance(argument, ArrayCore):
        is_wide = type(argument) is int and not -(1 << 63) <= argument < 1 << 63  # CuPy refuses those
        return (type(argument), argument) if is_wide else type(argument)
    layout = argument._layout
    return layout.dtype, layout.ndim, layout.c_contiguous  # a raw parameter is declared with all three
