"""The notebook's side: a ``cupy`` whose arrays live in a pool."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kernelproxy.client import Client
    from kernelproxy.sessions import adopt_session, current_session, open_session
    from kernelproxy.stream.session import Session

__all__ = ["Client", "Session", "activate", "adopt_session", "current_session", "deactivate", "open_session"]


def __getattr__(name: str) -> Any:
    """Import the client when it is asked for: command line and provisioner only ask the gateway."""
    if name in __all__:
        home = "sessions" if name.endswith("_session") else "client"
        return getattr(importlib.import_module(f"kernelproxy.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def activate() -> None:
    """Let ``import cupy`` and ``import cupyx`` give the remote CuPy from now on. The pool is asked on first use.

    Raises
    ------
    ImportError
        If another CuPy has been imported in this process already.
    """
    from kernelproxy.calls import interrupts
    from kernelproxy.namespace import finder  # the whole of CuPy's surface

    finder.install()
    interrupts.install()


def deactivate() -> None:
    """Let ``import cupy`` find what is installed here again."""
    from kernelproxy.namespace import finder

    finder.uninstall()
