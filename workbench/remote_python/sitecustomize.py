"""Makes ``import cupy`` remote in the Python that ``workbench run`` starts, then lets the next sitecustomize run.

Python imports this module by itself, because ``workbench run`` puts its directory on PYTHONPATH. A Python of another
environment that the program starts has no such client and is left as it is.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from pathlib import Path
from types import ModuleType


class _OnFirstUse(MetaPathFinder):
    """Lets ``import cupy`` activate the client: a program that needs no CuPy starts as fast as ever."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the remote module's spec for CuPy's own modules, None for all others."""
        if fullname.partition(".")[0] not in ("cupy", "cupyx"):
            return None
        sys.meta_path.remove(self)
        if importlib.util.find_spec("kernelproxy") is None:
            return None
        import kernelproxy
        from workbench import tracebacks

        kernelproxy.activate()
        tracebacks.tell_of_programs()
        return importlib.util.find_spec(fullname)


def _run_the_next() -> None:
    here = Path(__file__).parent
    others = [entry for entry in sys.path if Path(entry).absolute() != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


sys.meta_path.insert(0, _OnFirstUse())
_run_the_next()
