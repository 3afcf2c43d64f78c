"""gpu-workbench: CuPy in JupyterLab on a GPU that a whole group shares.

In a notebook ``%load_ext workbench`` makes ``import cupy`` remote and adds ``%gpu``; the kernel "Remote GPU (CuPy)"
does so by itself. In a terminal there is ``workbench`` (:mod:`workbench.cli`). `function` makes of a Python function
one that has a GPU only while it runs.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from workbench.functions import function

__all__ = ["function", "load_ipython_extension", "unload_ipython_extension"]

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Import what makes functions when it is asked for: the command line needs nothing of it."""
    if name == "function":
        return importlib.import_module("workbench.functions").function
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Make ``import cupy`` remote in ``shell`` and add the magics. Called by ``%load_ext workbench``."""
    from workbench import extension  # the command line, which needs no IPython, imports this package too

    extension.load(shell)


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """Undo `load_ipython_extension`. Called by ``%unload_ext workbench``."""
    from workbench import extension

    extension.unload(shell)
