"""The names that somebody tries who wants out: of Python's own types, of its machinery, and of the surface."""

from __future__ import annotations

import importlib.machinery
import io
import sys
import types
from functools import cache, partial
from typing import Any

from gpu_backend.opstream.surface import load

#: What sandbox escapes have gone through, and what CuPy's and NumPy's objects keep of files, code and addresses.
ESCAPES = tuple(
    """
    __class__ __bases__ __base__ __mro__ mro __subclasses__ __init__ __new__ __dict__ __globals__ __builtins__ __self__
    __func__ __wrapped__ __closure__ __code__ __defaults__ __kwdefaults__ __module__ __getattribute__ __getattr__
    __setattr__ __delattr__ __reduce__ __reduce_ex__ __getstate__ __setstate__ __init_subclass__ __subclasshook__
    __import__ __loader__ __spec__ __path__ __file__ __annotations__ __type_params__ __weakref__ __slots__ __dir__
    __format__ __sizeof__ __doc__ __name__ __qualname__ __call__ __enter__ __exit__ __iter__ __next__ __array__
    __array_interface__ __array_struct__ __array_function__ __array_ufunc__ __cuda_array_interface__ __dlpack__
    __buffer__ __class_getitem__ __instancecheck__ __prepare__ __objclass__ __text_signature__ __signature__
    gen gi_frame gi_code gi_yieldfrom cr_frame cr_code ag_frame ag_code tb_frame tb_next f_back f_builtins f_code
    f_globals f_locals f_trace co_consts co_names co_code func args keywords fget fset fdel cell_contents
    __context__ __cause__ __traceback__ with_traceback
    modules path meta_path path_hooks stdin stdout stderr exit abort fork system popen spawn open read write exec eval
    compile load_module get_data exec_module find_spec cdll LoadLibrary CDLL ctypes base data _objects ptr address
    tofile dump dumps tobytes fromfile save format format_map setflags getfield setfield newbyteorder type fields
    kernel cached_codes cached_code file_path _file _func _cache _module _kernel _source _entry _fn _pyfunc _device
    _heap ufunc pyfunc _pool _allocator _free gi_running send throw close
    """.split()
)

#: What a mapping of Python's own would be asked for.
KEYS = ("eval", "__import__", "open", "os", "sys", "__builtins__")


def _machinery() -> tuple[Any, ...]:
    def generator() -> Any:
        yield sys._getframe()

    running = generator()
    frame = next(running)
    try:
        raise ValueError
    except ValueError as error:
        trace = error.__traceback__
    plain = (object(), 0, 0.0, 0j, "", b"", bytearray(), memoryview(b""), (), [], {}, set(), frozenset(), slice(0))
    code = (running, frame, frame.f_code, trace, generator, len, [].append, partial(len), property(), type, sys)
    files = (io.BytesIO(), io.StringIO(), io.FileIO, io.TextIOWrapper, io.BufferedReader)
    loaders = (importlib.machinery.SourceFileLoader("a", "a"), importlib.machinery.ModuleSpec("a", None))
    return (*plain, *code, *files, *loaders, types.SimpleNamespace(), types.MappingProxyType({}), Exception())


@cache
def of_python() -> tuple[str, ...]:
    """Return the attributes of Python's types, frames, generators, code, modules, tracebacks, files and loaders."""
    return tuple(sorted({name for one in _machinery() for name in dir(one)}))


@cache
def of_surface() -> tuple[str, ...]:
    """Return the last names of all methods and properties of CuPy's."""
    kinds = ("Method", "Property")
    return tuple(sorted({name.rpartition(".")[2] for name, e in load().items() if type(e).__name__ in kinds}))


@cache
def everything() -> tuple[str, ...]:
    """Return all of them, once each."""
    return tuple(dict.fromkeys((*ESCAPES, *of_python(), *of_surface())))
