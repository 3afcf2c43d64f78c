"""What of this pool can carry a mechanism, and whether it is there: read off the code, never declared.

A policy is a module in ``gpu_backend/arbiter/policies``; a feature is listed in ``carriers.toml`` with the
modules and names that provide it. Files are looked at, not imported: the catalogue must not depend on the
backend, and a notebook that prints a table must not start it.
"""

from __future__ import annotations

import functools
import re
import tomllib
from pathlib import Path
from typing import Any

import msgspec

from catalog.paths import CARRIERS, INSTALLATION

__all__ = ["Feature", "available", "features", "missing_parts", "planned_policies", "policies"]

_POLICIES = "gpu_backend.arbiter.policies"

#: Modules beside the policies that are none themselves.
_SEAM = frozenset({"__init__", "base", "registry"})


class Feature(msgspec.Struct, frozen=True):
    """A feature of the pool and the modules or names (``package.module:Class.field``) that provide it."""

    id: str
    title: str
    provided_by: tuple[str, ...]
    is_planned: bool = False


@functools.cache
def features() -> dict[str, Feature]:
    """Return the features by id, read at the first call."""
    data = _data()["features"]
    return {
        name: Feature(name, about["title"], tuple(about["provided_by"]), about.get("planned", False))
        for name, about in data.items()
    }


@functools.cache
def planned_policies() -> tuple[str, ...]:
    """Return the policies that entries may name although the code does not have them yet."""
    return tuple(_data()["policies"]["planned"])


@functools.cache
def _data() -> dict[str, Any]:
    return tomllib.loads(CARRIERS.read_text(encoding="utf-8"))


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
    return feature is not None and not missing_parts(feature, root)


def missing_parts(feature: Feature, root: Path = INSTALLATION) -> tuple[str, ...]:
    """Return what of ``provided_by`` the code under ``root`` does not have."""
    return tuple(part for part in feature.provided_by if not _is_there(part, root))


def _is_there(dotted: str, root: Path) -> bool:
    module, _, name = dotted.partition(":")
    base = root.joinpath(*module.split("."))
    path = next((p for p in (base.with_suffix(".py"), base / "__init__.py") if p.is_file()), None)
    return path is not None and (not name or _defines(path.read_text(encoding="utf-8"), name.split(".")))


def _defines(text: str, names: list[str]) -> bool:
    """Return whether source ``text`` defines ``names``, each inside the one before.

    By indentation, which is exact enough for formatted code and forty times faster than parsing it: a notebook's
    first list of systems looks into every module that a feature names.
    """
    for depth, name in enumerate(names):
        indent = " " * (4 * depth)
        found = re.search(rf"^{indent}(?:(?:async )?def |class )?{re.escape(name)}\b\s*[:(\[]", text, re.MULTILINE)
        if found is None:
            return False
        rest = text[found.end() :].partition("\n")[2]
        ends = re.search(rf"^ {{0,{4 * depth}}}[^\s)\]#]", rest, re.MULTILINE)
        text = rest[: ends.start()] if ends else rest
    return True
