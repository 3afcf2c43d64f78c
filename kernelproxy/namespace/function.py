"""A remote function: called like CuPy's, documented by CuPy's own text."""

from __future__ import annotations

import inspect
from typing import Any

from gpu_backend import surface
from gpu_backend.wire import values as wire
from kernelproxy import dispatch
from kernelproxy.documentation import Documented


class RemoteFunction(Documented):
    """Stands for one public function of CuPy."""

    def __init__(self, qualname: str, entry: surface.Function | surface.GeneralizedUfunc) -> None:
        self._qualname = qualname
        self._entry = entry
        self.__module__, _, self.__name__ = qualname.rpartition(".")
        self.__qualname__ = self.__name__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        __tracebackhide__ = True
        return dispatch.call(self._qualname, args, kwargs)

    @property
    def __signature__(self) -> inspect.Signature | None:
        return surface.signature_of(self._entry) if isinstance(self._entry, surface.Function) else None

    def __repr__(self) -> str:
        return f"<function {self._qualname} (remote)>"

    def __reduce__(self) -> Any:
        from kernelproxy.namespace.names import make

        return make, (self._qualname,)

    def _wire_value(self) -> wire.Name:
        return wire.Name(self._qualname)
