"""The notebook's side: a ``cupy`` whose arrays live in a pool."""

from __future__ import annotations

from kernelproxy.session import Session, adopt_session, current_session, open_session

__all__ = ["Session", "activate", "adopt_session", "current_session", "deactivate", "open_session"]


def activate() -> None:
    """Let ``import cupy`` and ``import cupyx`` give the remote CuPy from now on. The pool is asked on first use.

    Raises
    ------
    ImportError
        If another CuPy has been imported in this process already.
    """
    from kernelproxy.namespace import finder  # the whole of CuPy's surface: not for those who only ask the gateway

    finder.install()


def deactivate() -> None:
    """Let ``import cupy`` find what is installed here again."""
    from kernelproxy.namespace import finder

    finder.uninstall()
