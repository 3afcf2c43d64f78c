"""One module of the remote CuPy. Its names are made when they are first used."""

from __future__ import annotations

import importlib
import types
from typing import Any

from gpu_backend.opstream import surface
from kernelproxy.namespace.homes import is_home, public_name
from kernelproxy.namespace.names import make
from kernelproxy.namespace.own import OWN
from kernelproxy.namespace.private_names import MADE, MODULES, RETURNED_BY, SAME_AS
from kernelproxy.namespace.private_uses import absence


class RemoteModule(types.ModuleType):
    """Looks every name up in the surface description; names that CuPy lacks are not there."""

    def __getattr__(self, name: str) -> Any:
        if name == "__version__":
            return surface.CUPY_VERSION
        if name == "__all__":
            return [one for one in self.__dir__() if not one.startswith("_") and hasattr(self, one)]
        qualname = f"{self.__name__}.{name}"
        described = surface.load()
        entry = described.get(qualname)
        if isinstance(entry, surface.Module) or qualname in MODULES or is_home(qualname):
            return importlib.import_module(qualname)
        if qualname in RETURNED_BY:
            return make(RETURNED_BY[qualname])()
        known = qualname in OWN or qualname in SAME_AS or qualname in MADE
        public = qualname if entry is not None or known or described.is_public(qualname) else public_name(qualname)
        if public is None:
            raise AttributeError(absence(qualname))
        value = make(public)
        setattr(self, name, value)
        return value

    def __dir__(self) -> list[str]:
        return sorted({*surface.load().below(self.__name__), *super().__dir__()})

    def __repr__(self) -> str:
        return f"<module {self.__name__!r} (remote, CuPy {surface.CUPY_VERSION})>"
