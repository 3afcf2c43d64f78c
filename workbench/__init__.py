"""gpu-workbench: CuPy in JupyterLab on a GPU that a whole group shares.

In a notebook ``%load_ext workbench`` makes ``import cupy`` remote and adds ``%gpu``; the kernel "Remote GPU (CuPy)"
does so by itself. In a terminal there is ``workbench`` (:mod:`workbench.cli`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

__all__ = ["load_ipython_extension", "unload_ipython_extension"]

__version__ = "0.1.0"


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Make ``import cupy`` remote in ``shell`` and add the magics. Called by ``%load_ext workbench``."""
    from workbench import extension  # the command line, which needs no IPython, imports this package too

    extension.load(shell)


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """Undo `load_ipython_extension`. Called by ``%unload_ext workbench``."""
    from workbench import extension

    extension.unload(shell)
