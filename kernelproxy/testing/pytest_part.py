"""What ``cupy.testing`` has of pytest, which need not be installed."""

from __future__ import annotations

import sys
import unittest
from typing import Any


def found() -> Any:
    """Return pytest; None if it is not installed."""
    try:
        import pytest
    except ImportError:
        return None
    return pytest


def needed(feature: str) -> Any:
    """Return pytest for a feature that is nothing without it.

    Raises
    ------
    RuntimeError
        If it is not installed.
    """
    module = found()
    if module is None:
        raise RuntimeError(
            f"cupy.testing: {feature} is not available, because pytest is not installed here. "
            "Install it with `pip install pytest`."
        )
    return module


def marked(name: str, function: Any, **about: str) -> Any:
    """Return ``function`` with a mark of pytest's; as it is, if there is no pytest to read the mark."""
    module = found()
    return function if module is None else getattr(module.mark, name)(**about)(function)


def skips() -> tuple[type[BaseException], ...]:
    """Return the classes of errors that say that a test does not apply."""
    module = sys.modules.get("pytest")  # nobody has raised an error of a module that nobody has imported
    return (unittest.SkipTest,) if module is None else (unittest.SkipTest, module.skip.Exception)
