"""Full-text search over all entries: SQLite's FTS5 where it is built in, a plain index where it is not.

Both engines get the same texts, in the same parts with the same weights, and answer with system ids, best first.
"""

from __future__ import annotations

import functools
import math
import re
import sqlite3
import unicodedata
import weakref
from collections.abc import Sequence
from typing import Protocol

import msgspec

from catalog.entry import System
from catalog.errors import NothingFound
from catalog.loader import entries
from catalog.nearest import nearest
from catalog.render.words import term_name
from catalog.rules import placements
from catalog.taxonomy import taxonomy

__all__ = ["Hit", "PlainIndex", "SqliteIndex", "search"]

#: The parts of an entry that are searched, with how much a word found there counts.
WEIGHTS = {
    "name": 10.0, "title": 6.0, "people": 5.0, "terms": 4.0, "summary": 4.0, "mechanism": 2.0, "claims": 2.0,
    "limitations": 1.0, "pool": 1.0, "unverified": 0.3,
}  # fmt: skip

_WORD = re.compile(r"\w+")


class Hit(msgspec.Struct, frozen=True):
    """A system that fits a search, and in which part of its entry the words were found."""

    id: str
    part: str


class Index(Protocol):
    """What finds ids for words."""

    def find(self, words: Sequence[str], *, every: bool) -> list[str]:
        """Return the ids of systems with ``every`` word, or with any, best first."""
        ...


def search(query: str) -> list[Hit]:
    """Return the systems that fit ``query``, best first.

    Words are found by their beginnings, without regard to case and accents. If no system has all words, those
    that have some are returned. Words that the taxonomy knows as synonyms of a term, such as "unified memory" of
    oversubscription, are answered from the systems' places instead: a text may name what its system does not do.

    Raises
    ------
    NothingFound
        If the query has no word, or no system has any of them; with the nearest word that one has.
    """
    words = _folded(query)
    if not words:
        raise NothingFound("a search needs at least one word")
    index = _index()
    placed, words = _placed(words)
    ids = index.find(words, every=True) or index.find(words, every=False) if words else list(placed or ())
    if placed is not None:
        ids = _ranked(index, query, placed.intersection(ids) or placed)
    if not ids:
        near = nearest(words[0], _vocabulary())
        hint = f"; did you mean {near!r}?" if near else ""
        raise NothingFound(f"no system's entry contains {query!r}{hint}")
    parts = _parts()
    return [Hit(name, "terms" if placed is not None else _where(parts[name], words)) for name in ids]


def _placed(words: list[str]) -> tuple[set[str] | None, list[str]]:
    """Return the systems that stand where a synonym among ``words`` points, or none of it, and the other words."""
    found: set[str] | None = None
    for phrase, terms in _synonyms().items():
        at = next((n for n in range(len(words)) if tuple(words[n : n + len(phrase)]) == phrase), None)
        if at is None:
            continue
        words = words[:at] + words[at + len(phrase) :]
        there = {
            system.id
            for system in entries().values()
            for name, placement in placements(system)
            if any((name, term) in terms for term in placement.terms)
        }
        found = there if found is None else found & there or found | there
    return found, words


def _ranked(index: Index, query: str, chosen: set[str]) -> list[str]:
    """Return the chosen systems, those first whose texts fit the whole query best."""
    mentioned = [name for name in index.find(_folded(query), every=False) if name in chosen]
    return [*mentioned, *(name for name in entries() if name in chosen.difference(mentioned))]


@functools.cache
def _synonyms() -> dict[tuple[str, ...], set[tuple[str, str]]]:
    """Return the terms, each with its dimension, that a phrase stands for; the longest phrases first."""
    out: dict[tuple[str, ...], set[tuple[str, str]]] = {}
    for dimension in taxonomy().dimensions.values():
        for term in dimension.terms.values():
            for phrase in term.synonyms:
                out.setdefault(tuple(_folded(phrase)), set()).add((dimension.id, term.id))
    return dict(sorted(out.items(), key=lambda item: -len(item[0])))


def _folded(text: str) -> list[str]:
    """Return the words of ``text`` without case and accents."""
    bare = unicodedata.normalize("NFKD", text)
    return _WORD.findall("".join(c for c in bare if not unicodedata.combining(c)).casefold())


@functools.cache
def _parts() -> dict[str, dict[str, str]]:
    """Return the searched texts of every system by id and part."""
    return {system.id: _texts(system) for system in entries().values()}


def _texts(system: System) -> dict[str, str]:
    claims = [f"{c.quantity} {c.expression} {c.conditions.hardware} {c.conditions.workload}" for c in system.claims]
    claims += [f"{e.hardware} {' '.join(e.workloads)} {' '.join(e.baselines)}" for e in system.evaluation]
    people = [author for publication in system.publications for author in publication.authors]
    terms = [f"{term} {term_name(name, term)}" for name, p in placements(system) for term in p.terms]
    details = [p.detail for _, p in placements(system)]
    return {
        "name": " ".join([system.id, system.name, *system.aliases]),
        "title": " ".join([system.title, *(publication.title for publication in system.publications)]),
        "people": " ".join([*people, *system.institutions, system.venue, str(system.year)]),
        "terms": " ".join(terms),
        "summary": system.summary,
        "mechanism": " ".join([system.problem.text, *(m.text for m in system.mechanism), *details]),
        "claims": " ".join(claims),
        "limitations": " ".join(m.text for m in system.limitations),
        "pool": " ".join([system.pool.how, *system.pool.carriers]),
        "unverified": " ".join(each.text for each in system.unverified),
    }


def _where(parts: dict[str, str], words: Sequence[str]) -> str:
    """Return the weightiest part that has all the words, or else the first word found anywhere."""
    found = {part: _folded(text) for part, text in parts.items()}

    def has(part: str, word: str) -> bool:
        return any(other.startswith(word) for other in found[part])

    every = [part for part in WEIGHTS if all(has(part, word) for word in words)]
    some = [part for part in WEIGHTS if any(has(part, word) for word in words)]
    # A stem that only the index knows (run, running) may be in neither.
    return (every or some or ["mechanism"])[0]


@functools.cache
def _vocabulary() -> frozenset[str]:
    words = {word for parts in _parts().values() for text in parts.values() for word in _folded(text)}
    return frozenset(word for word in words if len(word) > 3 and not word.isdigit())


@functools.cache
def _index() -> Index:
    try:
        return SqliteIndex(_parts())
    except sqlite3.OperationalError:  # this Python's SQLite was built without FTS5
        return PlainIndex(_parts())


class SqliteIndex:
    """FTS5 in memory, ranked by weighted BM25.

    Raises
    ------
    sqlite3.OperationalError
        If SQLite has no FTS5.
    """

    def __init__(self, parts: dict[str, dict[str, str]]) -> None:
        # Results are the same from any thread, and a notebook may ask from several.
        self._db = sqlite3.connect(":memory:", check_same_thread=False)
        weakref.finalize(self, self._db.close)
        columns = ", ".join(WEIGHTS)
        self._db.execute(
            f"create virtual table entry using fts5"
            f"(id unindexed, {columns}, tokenize='porter unicode61 remove_diacritics 2')"
        )
        marks = ", ".join("?" * (len(WEIGHTS) + 1))
        rows = [(name, *(texts[part] for part in WEIGHTS)) for name, texts in parts.items()]
        self._db.executemany(f"insert into entry values ({marks})", rows)

    def find(self, words: Sequence[str], *, every: bool) -> list[str]:
        """Return the ids of systems with ``every`` word, or with any, best first."""
        # Words hold letters and digits only, so quoting them is enough to keep FTS5's own syntax out.
        query = (" AND " if every else " OR ").join(f'"{word}" *' for word in words)
        weights = ", ".join(str(weight) for weight in (0.0, *WEIGHTS.values()))
        order = f"select id from entry where entry match ? order by bm25(entry, {weights})"
        return [row[0] for row in self._db.execute(order, (query,))]


class PlainIndex:
    """The same without FTS5: word counts by part, damped, weighted, and scaled by rarity."""

    def __init__(self, parts: dict[str, dict[str, str]]) -> None:
        self._words = {name: {part: _folded(text) for part, text in texts.items()} for name, texts in parts.items()}

    def find(self, words: Sequence[str], *, every: bool) -> list[str]:
        """Return the ids of systems with ``every`` word, or with any, best first."""
        by_word = [self._scores(word) for word in words]
        rarity = [math.log1p(len(self._words) / (1 + len(scores))) for scores in by_word]
        ids = set.intersection(*map(set, by_word)) if every else set.union(*map(set, by_word))
        total = {
            name: sum(scores.get(name, 0.0) * rare for scores, rare in zip(by_word, rarity, strict=True))
            for name in ids
        }
        return sorted(total, key=lambda name: (-total[name], name))

    def _scores(self, word: str) -> dict[str, float]:
        out = {}
        for name, parts in self._words.items():
            score = sum(
                WEIGHTS[part] * math.log1p(sum(other.startswith(word) for other in others))
                for part, others in parts.items()
            )
            if score:
                out[name] = score
        return out
