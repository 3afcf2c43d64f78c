"""Makes ``import cupy`` remote in the Python that ``workbench run`` starts, then lets the next sitecustomize run.

Python imports this module by itself, because ``workbench run`` puts its directory on PYTHONPATH. A Python of another
environment that the program starts has no such client and is left as it is.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
from pathlib import Path


def _activate() -> None:
    if importlib.util.find_spec("kernelproxy") is None:
        return
    import kernelproxy

    kernelproxy.activate()


def _run_the_next() -> None:
    here = Path(__file__).parent
    others = [entry for entry in sys.path if Path(entry).absolute() != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


try:
    _activate()
finally:
    _run_the_next()
