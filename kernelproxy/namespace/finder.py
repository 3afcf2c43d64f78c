"""The import hook: while it is installed, ``import cupy`` gives the remote CuPy."""

from __future__ import annotations

import importlib
import importlib.machinery
import sys
import types
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder

from gpu_backend.opstream import surface
from kernelproxy.namespace import stand_in
from kernelproxy.namespace.bindings import BINDINGS, find_binding, forget_bindings
from kernelproxy.namespace.homes import homes_below, is_home
from kernelproxy.namespace.module import RemoteModule
from kernelproxy.namespace.names import make
from kernelproxy.namespace.private_names import MODULES

_ROOTS = ("cupy", "cupyx")
#: An object that CuPy serves as a module too, for ``from cupy.fft.config import get_plan_cache``.
_CONFIG = "cupy.fft.config"


class RemoteLoader(Loader):
    """Makes the module objects."""

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        """Return an empty remote module; its names appear when they are used."""
        return make(_CONFIG) if spec.name == _CONFIG else RemoteModule(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Import with a root all modules that classes and functions say they are of, as CuPy does.

        cloudpickle takes a class by its name only if its module is imported, and else takes it to pieces.
        """
        if module.__name__ in _ROOTS:
            for home in homes_below(module.__name__):
                importlib.import_module(home)


class RemoteFinder(MetaPathFinder):
    """Finds every module of the surface and some private ones, before any CuPy that may be installed."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the spec of a module of CuPy, None for all others."""
        root = fullname.partition(".")[0]
        if root not in _ROOTS:
            return find_binding(fullname) if root == BINDINGS else None
        described = surface.load()
        public = isinstance(described.get(described.canonical(fullname)), surface.Module)
        if not public and fullname not in MODULES and not is_home(fullname) and fullname != _CONFIG:
            return None
        spec = importlib.machinery.ModuleSpec(fullname, RemoteLoader(), origin=stand_in.__file__, is_package=True)
        spec.has_location = True  # programs look into the folder of `cupy.__file__`; a folder of ours has other modules
        spec.submodule_search_locations = list(stand_in.__path__)
        return spec


_finder = RemoteFinder()


def install() -> None:
    """Serve the remote CuPy from now on.

    Raises
    ------
    ImportError
        If another CuPy has been imported already: its arrays would not be ours.
    """
    for root in _ROOTS:
        module = sys.modules.get(root)
        if module is not None and not isinstance(module, RemoteModule):
            raise ImportError(
                f"{root} has already been imported from {getattr(module, '__file__', 'elsewhere')}. "
                "Restart the kernel and load the workbench before importing it."
            )
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)


def uninstall() -> None:
    """Serve it no more, and forget the modules that were served."""
    if _finder in sys.meta_path:
        sys.meta_path.remove(_finder)
    forget_bindings()
    for name, module in list(sys.modules.items()):
        if isinstance(module, RemoteModule) or name == _CONFIG:
            del sys.modules[name]
