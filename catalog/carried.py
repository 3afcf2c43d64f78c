"""How far this pool carries a system's mechanism."""

from __future__ import annotations

from catalog import carriers
from catalog.entry import System
from catalog.render.document import Mark

__all__ = ["STATUSES", "carrier_title", "status", "status_mark"]

#: From the mechanism that runs to the one that cannot be carried.
STATUSES = ("available", "partly", "planned", "not carried")


def status(system: System) -> str:
    """Return one of :data:`STATUSES`, read off the code as it stands."""
    names = system.pool.carriers
    if not names:
        return "not carried"
    there = [carriers.available(name) for name in names]
    return "available" if all(there) else "partly" if any(there) else "planned"


def carrier_title(name: str) -> str:
    """Return the words for a carrier: ``policy tgs`` or a feature's title."""
    kind, _, rest = name.partition(":")
    return f"policy {rest}" if kind == "policy" else carriers.features()[rest].title


def status_mark(system: System) -> Mark:
    """Return the status as a mark."""
    found = status(system)
    return Mark(found, "good" if found == "available" else "waiting")
