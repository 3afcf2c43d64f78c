"""How systems stand to each other, seen from every side.

An entry states a relation once. Here the symmetric kinds are mirrored and the directed kinds get their reverse,
so that both ends know.
"""

from __future__ import annotations

import functools

import msgspec

from catalog.loader import entries

__all__ = ["KINDS", "REVERSE", "SYMMETRIC", "Edge", "edges", "related"]

#: Kinds that hold in both directions.
SYMMETRIC = frozenset({"same-authors", "same-mechanism", "name-clash", "see-also"})

#: Directed kinds and what they are called from the other end.
REVERSE = {"builds-on": "basis-of", "compares-with": "compared-by", "follow-up-of": "followed-by"}

#: Every kind, as an entry may state it, with the words for a sentence.
KINDS = {
    "builds-on": "builds on",
    "basis-of": "is the basis of",
    "compares-with": "compares itself with",
    "compared-by": "is compared against by",
    "follow-up-of": "follows up",
    "followed-by": "is followed up by",
    "same-authors": "shares authors with",
    "same-mechanism": "has the mechanism of",
    "name-clash": "is not to be confused with",
    "see-also": "see also",
}


class Edge(msgspec.Struct, frozen=True):
    """One relation, seen from ``source``."""

    source: str
    kind: str
    target: str
    confidence: str
    note: str = ""

    def reversed(self) -> Edge:
        """Return the same relation, seen from ``target``."""
        return Edge(self.target, REVERSE.get(self.kind, self.kind), self.source, self.confidence, self.note)


@functools.cache
def edges() -> tuple[Edge, ...]:
    """Return every relation once, as stated; a symmetric one that both entries state only once."""
    known = entries()
    found: dict[tuple[str, frozenset[str]] | tuple[str, str, str], Edge] = {}
    for system in known.values():
        for stated in system.relations:
            if stated.target not in known:
                continue  # the checks report it; a reader still gets the rest
            edge = Edge(system.id, stated.kind, stated.target, stated.confidence, stated.note)
            ends = frozenset({edge.source, edge.target})
            both_ways = stated.kind in SYMMETRIC
            found.setdefault((stated.kind, ends) if both_ways else (edge.source, stated.kind, edge.target), edge)
    return tuple(found.values())


@functools.cache
def related(name: str) -> tuple[Edge, ...]:
    """Return the relations of the system with id ``name``, all seen from it, directed kinds first."""
    mine = [edge for edge in edges() if edge.source == name]
    mine += [edge.reversed() for edge in edges() if edge.target == name]
    order = list(KINDS)
    return tuple(sorted(mine, key=lambda edge: (order.index(edge.kind), edge.target)))
