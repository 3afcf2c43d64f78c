"""Has this package be imported from its sources, where some of its modules are compiled as well."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import SOURCE_SUFFIXES, FileFinder, ModuleSpec, SourceFileLoader
from types import ModuleType

#: Says "off" where no compiled module is to be used; else they are, where there are some.
VARIABLE = "GPU_WORKBENCH_COMPILED_MODULES"


class _Sources:
    """Finds modules of this package by their sources only."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if path is None or name.partition(".")[0] != __package__:
            return None
        finders = [FileFinder(folder, (SourceFileLoader, SOURCE_SUFFIXES)) for folder in path]
        return next((spec for finder in finders if (spec := finder.find_spec(name)) is not None), None)


def are_asked_for() -> bool:
    """Tell whether the environment says that no compiled module is to be used."""
    return os.environ.get(VARIABLE) == "off"


def in_c(name: str) -> ModuleType | None:
    """Return the module of that name, which is written in C; None where it was not compiled, or is not to be used."""
    if are_asked_for():
        return None
    try:
        return import_module(name)
    except ImportError:
        return None


def prefer_if_asked() -> None:
    """Take sources from now on, if the environment says that no compiled module is to be used."""
    if are_asked_for():
        sys.meta_path.insert(0, _Sources)
