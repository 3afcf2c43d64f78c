"""Kernels written in Python: ``cupyx.jit.rawkernel`` and ``cupy.vectorize``.

The functions never run. Their source goes to the executor when they are first called, together with what their free
names stand for; it is compiled there.
"""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
import textwrap
import types
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from gpu_backend.wire import values as wire
from kernelproxy.calls import dispatch
from kernelproxy.calls.argument_types import DTypeLike, Extent, StreamLike
from kernelproxy.calls.on_stream import on_stream
from kernelproxy.calls.remote_object import RemoteObject
from kernelproxy.client import Client, current
from kernelproxy.errors import warn_of_experimental
from kernelproxy.namespace.constant_calls import evaluated, is_own_function
from kernelproxy.namespace.kernels import kind_of, launch_known, note_name

_NUMBERS = (bool, int, float, complex, str, np.generic, np.dtype, type(None))
_MODULE_ROOTS = ("cupy", "cupyx", "numpy", "math")


class JitName:
    """A name that means something in kernels only, such as ``cupyx.jit.threadIdx``."""

    def __init__(self, qualname: str) -> None:
        self.qualname = qualname
        self.__name__ = qualname.rpartition(".")[2]
        self.__doc__ = f"{qualname}, for use in kernels that `cupyx.jit.rawkernel` compiles."

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """Refuse: only kernels call it."""
        raise NotImplementedError(f"{self.qualname} can be called in kernels of cupyx.jit.rawkernel only")

    def __repr__(self) -> str:
        return f"<{self.qualname}>"


class _Shipped:
    """What a client's executor has made of kernels written in Python."""

    def __init__(self, client: Client) -> None:
        self._remotes: WeakKeyDictionary[Any, RemoteObject] = WeakKeyDictionary()

    def get(self, kernel: JitRawKernel | vectorize, ship: Callable[[], RemoteObject]) -> RemoteObject:
        """Return what the executor has of ``kernel``; made by ``ship`` if there is nothing yet."""
        remote = self._remotes.get(kernel)
        if remote is None:
            remote = self._remotes[kernel] = ship()
        return remote


class JitRawKernel:
    """A kernel written in Python; compiled for each combination of argument types when it is first called."""

    __module__ = "cupyx.jit"

    def __init__(self, function: Callable[..., object], mode: str, device: bool) -> None:
        self._function = function
        self._options = {"mode": mode, "device": device}
        self._is_shipping = False

    @property
    def remote(self) -> RemoteObject:
        """The kernel in the current client's executor. One that needs itself raises ValueError, as in CuPy."""
        return current().part(_Shipped).get(self, self._ship)

    def _ship(self) -> RemoteObject:
        if self._is_shipping:
            raise ValueError(f"Recursive function is not supported: {self._function.__name__}")
        self._is_shipping = True
        try:
            return shipped("cupyx.jit.rawkernel", self._function, self._options)
        finally:
            self._is_shipping = False

    def __call__(
        self, grid: Extent, block: Extent, args: Iterable[object], shared_mem: int = 0, stream: StreamLike = None
    ) -> None:
        """Launch. The first launch with each kind of arguments compiles, so it is waited for."""
        args = tuple(args)
        client = dispatch.whose(args)
        form = (grid, block, shared_mem, *map(kind_of, args))
        with client, on_stream(client, stream):
            remote = self.remote
            launch_known(remote, ".call", (remote, grid, block, args), {"shared_mem": shared_mem}, form)

    def __getitem__(self, grid_and_block: tuple[Extent, Extent]) -> Callable[..., None]:
        """Return the kernel with grid and block set, to be called with its arguments alone, as in Numba."""
        grid, block = (part if isinstance(part, tuple) else (part, 1, 1) for part in grid_and_block)
        return lambda *args, **kwargs: self(grid, block, args, **kwargs)

    @property
    def cached_codes(self) -> Any:
        """The C++ texts so far, by argument types as text."""
        remote = self.remote
        if not remote.__dict__.get("_launched"):
            told = "No codes are cached because compilation is deferred until the first function call."
            warnings.warn(told, stacklevel=2)
            return {}
        return dict(dispatch.ask_object(".cached_codes", remote))

    @property
    def cached_code(self) -> str:
        """The first of :attr:`cached_codes`."""
        codes = self.cached_codes
        if len(codes) > 1:
            told = "The input types of the kernel could not be inferred. Please use `.cached_codes` instead."
            warnings.warn(told, stacklevel=2)
        return next(iter(codes.values()))  # type: ignore[no-any-return]


def rawkernel(*, mode: str = "cuda", device: bool = False) -> Callable[[Callable[..., Any]], JitRawKernel]:
    """Return a decorator that makes a kernel of a function; parameters as in CuPy."""
    warn_of_experimental("cupyx.jit.rawkernel")

    def wrap(function: Callable[..., object]) -> JitRawKernel:
        kernel = JitRawKernel(function, mode, device)
        return functools.update_wrapper(kernel, function)  # type: ignore[return-value]

    return wrap


class vectorize:  # noqa: N801 (CuPy's name)
    """A Python function of numbers made one of arrays; parameters as in CuPy."""

    __module__ = "cupy._functional.vectorize"

    def __init__(
        self,
        pyfunc: Callable[..., object],
        otypes: str | Sequence[DTypeLike] | None = None,
        doc: str | None = None,
        excluded: object = None,
        cache: bool = False,
        signature: object = None,
    ) -> None:
        self.pyfunc = pyfunc
        self.__doc__ = doc or pyfunc.__doc__
        self.otypes = None if otypes is None else "".join(np.dtype(kind).char for kind in otypes)
        self.excluded, self.cache, self.signature = excluded, cache, signature
        for name, value in (("excluded", excluded), ("signature", signature)):
            if value is not None:
                raise NotImplementedError(f"cupy.vectorize does not support `{name}` option currently.")

    def _ship(self) -> RemoteObject:
        options = {} if self.otypes is None else {"otypes": list(self.otypes)}
        return shipped("cupy.vectorize", self.pyfunc, options)

    def __call__(self, *args: object) -> Any:
        """Return the function's results on all elements of the broadcast arguments."""
        with dispatch.whose(args) as client:
            return dispatch.ask_object(".call", client.part(_Shipped).get(self, self._ship), *args)


def shipped(kind: str, function: Callable[..., object], options: Mapping[str, object]) -> RemoteObject:
    """Return the object of class ``kind`` that the executor has made of ``function``.

    Raises
    ------
    ValueError
        If the source cannot be found: a builtin, or a lambda beside another on its line.
    TypeError
        If the function uses something of this process that no kernel can use.
    """
    if not callable(function):
        raise ValueError("`func` must be a callable object.")
    text = _source_of(function)
    tree = ast.parse(text)
    used = _free_names(tree)
    variables = inspect.getclosurevars(function)
    names = {**variables.builtins, **variables.globals, **variables.nonlocals}
    if any(is_own_function(names.get(name)) for name in used):
        tree, results = evaluated(tree, {name: names[name] for name in used & names.keys()}, _is_plain)
        text, used, names = ast.unparse(tree), _free_names(tree), names | results
    described = {name: _described(name, value) for name, value in names.items() if name in used}
    made: RemoteObject = dispatch.ask_object(".python_kernel", kind, function.__name__, text, described, options)
    note_name(made, function.__name__)
    return made


def _free_names(tree: ast.Module) -> set[str]:
    """Return the names that are read in a function and neither its parameters nor assigned in it."""
    named = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    own = {node.id for node in named if not isinstance(node.ctx, ast.Load)}
    own |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    return {node.id for node in named} - own


def _described(name: str, value: object) -> tuple[str, Any]:
    """Return what ``value`` is to a kernel; see the executor's `python_kernels.make_kernel`."""
    if isinstance(value, JitRawKernel):
        return "kernel", value.remote
    if isinstance(value, JitName):
        return "public", value.qualname
    if isinstance(value, types.ModuleType) and value.__name__.partition(".")[0] in _MODULE_ROOTS:
        return "module", value.__name__
    if isinstance(value, type) and issubclass(value, np.generic):
        return "public", f"numpy.{value.__name__}"
    if isinstance(value, (type, types.BuiltinFunctionType)) and value.__module__ == "builtins":
        return "builtin", value.__name__
    if isinstance(value, types.BuiltinFunctionType) and value.__module__ == "math":
        return "public", f"math.{value.__name__}"
    if isinstance(value, np.ufunc):
        return "public", f"numpy.{value.__name__}"
    named = getattr(value, "_wire_value", None)
    reference = None if named is None or isinstance(value, type) else named()
    if isinstance(reference, wire.Name):
        return "public", reference.qualname
    if _is_plain(value):
        return "value", value
    raise TypeError(
        f"Invalid use of '{name}' in a kernel: a {type(value).__name__} of this process means nothing on the GPU. "
        "Kernels use numbers, cupyx.jit, the ufuncs and dtypes of CuPy, other kernels, and what functions return for "
        "constants."
    )


def _is_plain(value: object) -> bool:
    return all(map(_is_plain, value)) if isinstance(value, tuple) else isinstance(value, _NUMBERS)


def _source_of(function: Callable[..., object]) -> str:
    try:
        lines, start = inspect.getsourcelines(function)
    except (OSError, TypeError):
        raise ValueError(
            f"JIT needs access to Python source code for {function} but could not be located.\n"
            "(hint: it is likely you passed a built-in function or method)"
        ) from None
    if function.__name__ != "<lambda>":
        return textwrap.dedent("".join(lines))
    # The lines that hold a lambda need not parse by themselves: it is looked for in the tree of its whole file.
    tree = ast.parse("".join(linecache.getlines(inspect.getsourcefile(function) or "")))
    near = [one for one in ast.walk(tree) if isinstance(one, ast.Lambda) and 0 <= one.lineno - start < len(lines)]
    if len(near) != 1:
        raise ValueError(
            f"Multiple callables are found near the definition of {function}, and JIT could not identify the source "
            "code for it."
        )
    return ast.unparse(near[0])
