"""What of this pool can carry a mechanism, and whether it is there: read off the code, never declared.

A policy is a module in ``gpu_backend/arbiter/policies``; a feature is listed in ``carriers.toml`` with the
modules and names that provide it. Files are looked at, not imported: the catalogue must not depend on the
backend, and a notebook that prints a table must not start it.
"""

from __future__ import annotations

import ast
import functools
import tomllib
from pathlib import Path

import msgspec

from catalog.paths import CARRIERS, INSTALLATION

__all__ = ["Feature", "available", "features", "policies"]

_POLICIES = "gpu_backend.arbiter.policies"

#: Modules beside the policies that are none themselves.
_SEAM = frozenset({"__init__", "base", "registry"})


class Feature(msgspec.Struct, frozen=True):
    """A feature of the pool and the modules or names (``package.module:name``) that provide it."""

    id: str
    title: str
    provided_by: tuple[str, ...]


@functools.cache
def features() -> dict[str, Feature]:
    """Return the features by id, read at the first call."""
    data = tomllib.loads(CARRIERS.read_text(encoding="utf-8"))["features"]
    return {name: Feature(name, about["title"], tuple(about["provided_by"])) for name, about in data.items()}


@functools.cache
def policies(root: Path = INSTALLATION) -> tuple[str, ...]:
    """Return the names of the policies in the code under ``root``, sorted; none where there is no arbiter."""
    folder = root.joinpath(*_POLICIES.split("."))
    names = {path.stem for path in folder.glob("*.py")} - _SEAM
    return tuple(sorted(name for name in names if not name.startswith("_")))


@functools.cache
def available(carrier: str, root: Path = INSTALLATION) -> bool:
    """Return whether the code under ``root`` has a carrier (``policy:name`` or ``feature:name``)."""
    kind, _, name = carrier.partition(":")
    if kind == "policy":
        return name in policies(root)
    feature = features().get(name)
    return feature is not None and all(_is_there(part, root) for part in feature.provided_by)


def _is_there(dotted: str, root: Path) -> bool:
    module, _, name = dotted.partition(":")
    base = root.joinpath(*module.split("."))
    path = next((p for p in (base.with_suffix(".py"), base / "__init__.py") if p.is_file()), None)
    if path is None or not name:
        return path is not None
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return name in {getattr(node, "name", None) for node in tree.body}
