"""How far this pool carries a system's mechanism."""

from __future__ import annotations

from catalog import carriers
from catalog.entry import System
from catalog.render.document import Mark

__all__ = ["STATUSES", "carrier_title", "how_label", "is_ready", "status", "status_mark"]

#: From the mechanism that runs to the one that cannot be carried. What is there is read off the code; whether that is
#: the whole mechanism, a part of it or only its idea is said by the entry.
STATUSES = ("whole", "part", "idea", "planned", "not carried")


def status(system: System) -> str:
    """Return one of :data:`STATUSES`."""
    if not system.pool.carriers:
        return "not carried"
    there = [carriers.available(name) for name in system.pool.carriers]
    if not any(there):
        return "planned"
    extent = system.pool.extent or "part"
    return "part" if extent == "whole" and not all(there) else extent


def is_ready(system: System) -> bool:
    """Return whether all that carries the system is in the code, so that its cell runs."""
    names = system.pool.carriers
    return bool(names) and all(carriers.available(name) for name in names)


def how_label(system: System) -> str:
    """Return the words above ``pool.how``, which is written as if all were there: no plan is told as a fact."""
    if is_ready(system):
        return "how"
    return {"not carried": "why not", "planned": "how, once there"}.get(status(system), "how, once all is there")


def carrier_title(name: str) -> str:
    """Return the words for a carrier: ``policy tgs`` or a feature's title."""
    kind, _, rest = name.partition(":")
    return f"policy {rest}" if kind == "policy" else carriers.features()[rest].title


def status_mark(system: System) -> Mark:
    """Return the status as a mark."""
    found = status(system)
    return Mark(found, "good" if found in {"whole", "part", "idea"} else "waiting")
