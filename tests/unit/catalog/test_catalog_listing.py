"""Systems as a collection: filtered, sorted, searched, compared, turned into data."""

from __future__ import annotations

import contextlib
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import catalog
from catalog.fulltext import PlainIndex, SqliteIndex, _folded, _parts
from catalog.nearest import nearest

everything = catalog.systems()


def test_a_collection_behaves_as_a_sequence() -> None:
    assert len(everything) == len(list(everything)) == len(everything.ids)
    assert everything[0] is everything[everything.ids[0]]
    assert everything[:3].ids == everything.ids[:3]
    assert "tgs" in everything
    assert catalog.get("tgs") in everything
    assert repr(everything[:2]).startswith("<2 systems: ")


@pytest.mark.parametrize("name", ["tgs", "TGS", " tgs "])
def test_systems_are_found_by_any_spelling(name: str) -> None:
    assert catalog.get(name).id == "tgs"


def test_systems_are_found_by_alias_with_blanks_and_underscores() -> None:
    assert catalog.get("nvidia_mps") is catalog.get("NVIDIA MPS") is catalog.get("nvidia-mps")
    for system in everything:
        assert all(catalog.get(alias) is system for alias in (system.id, system.name, *system.aliases))


@pytest.mark.parametrize(("typed", "meant"), [("fratcos", "fractos"), ("ant man", "antman"), ("tsg", "tgs")])
def test_an_unknown_system_gets_the_nearest(typed: str, meant: str) -> None:
    with pytest.raises(catalog.UnknownSystem, match=rf"^no system is named '{typed}'; did you mean '{meant}'\?$"):
        catalog.get(typed)


def test_filters_mean_any_of_the_values_and_all_of_the_fields() -> None:
    found = everything.filter(sharing=["temporal", "spatial"], interception="cuda-driver-api", year="2020-2023")
    assert found.ids
    for system in everything:
        fits = (
            {"temporal", "spatial"} & set(system.classification.sharing.terms)
            and "cuda-driver-api" in system.classification.interception.terms
            and 2020 <= system.year <= 2023
        )
        assert (system in found) == bool(fits)


@pytest.mark.parametrize(
    ("wanted", "fits"),
    [
        (2023, lambda year: year == 2023),
        ("2023", lambda year: year == 2023),
        ("2020-2022", lambda year: 2020 <= year <= 2022),
        (">=2022", lambda year: year >= 2022),
        ("> 2022", lambda year: year > 2022),
        ("<=2017", lambda year: year <= 2017),
        ("<2017", lambda year: year < 2017),
        (range(2018, 2021), lambda year: 2018 <= year <= 2020),
        ([2017, "2024"], lambda year: year in {2017, 2024}),
        (lambda year: year % 2 == 0, lambda year: year % 2 == 0),
    ],
)
def test_years(wanted: Any, fits: Any) -> None:
    found = everything.filter(year=wanted)
    assert found.ids == tuple(system.id for system in everything if fits(system.year))
    assert found.ids


def test_free_text_fields_take_any_part() -> None:
    assert "tgs" in everything.filter(institutions="peking").ids
    assert everything.filter(venue="no such venue").ids == ()
    assert str(everything.filter(venue="no such venue")) == "No system fits."


@pytest.mark.parametrize(
    ("criteria", "sentence"),
    [
        ({"sharing": "tempral"}, "sharing has no term 'tempral'; did you mean 'temporal'?"),
        ({"shring": "temporal"}, "no field is named 'shring'; did you mean 'sharing'?"),
        ({"year": "soon"}, "'soon' is no year; write 2023, 2020-2023 or >=2020"),
        ({"here": "hole"}, "here has no term 'hole'; did you mean 'whole'?"),
    ],
)
def test_a_wrong_criterion_gets_the_nearest(criteria: dict[str, Any], sentence: str) -> None:
    with pytest.raises(catalog.CatalogError) as caught:
        catalog.systems(**criteria)
    assert str(caught.value) == sentence


def test_sorting() -> None:
    years = [system.year for system in everything.sort("year")]
    assert years == sorted(years)
    assert [system.year for system in everything.sort("year", reverse=True)] == sorted(years, reverse=True)
    names = [system.name.casefold() for system in everything.sort("name")]
    assert names == sorted(names)
    dois = [bool(system.publications[0].doi) for system in everything.sort("doi")]
    assert dois == sorted(dois, reverse=True)  # those without one come last


def test_columns() -> None:
    shown = everything.show("name", "year")
    assert shown.records()[0].keys() == {"name", "year"}
    assert shown.filter(year=2023).records()[0].keys() == {"name", "year"}
    with pytest.raises(catalog.UnknownField, match=r"did you mean 'venue'\?"):
        everything.show("veneu")


def test_to_pandas_with_and_without_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = SimpleNamespace(from_records=lambda rows: rows)
    monkeypatch.setitem(sys.modules, "pandas", SimpleNamespace(DataFrame=frame))
    assert everything.to_pandas() == everything.records()
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ModuleNotFoundError, match=r"needs pandas, which is not installed here: pip install pandas"):
        everything.to_pandas()


def test_claims_are_comparable() -> None:
    claims = catalog.claims().filter(kind="parameter", measure="time").sort()
    seconds = [item.base_value for item in claims if item.base_value is not None]
    assert len(seconds) > 5
    assert seconds == sorted(seconds)
    windows = {f"{item.system.id}.{item.claim.id}": item.base_value for item in claims}
    assert windows["tgs.launch-period"] == pytest.approx(0.05)
    assert windows["tgs.report-period"] == 5.0
    row = next(row for row in catalog.claims().records() if row["id"] == "opportunistic-throughput")
    assert (row["system"], row["value"], row["unit"], row["bound"]) == ("tgs", 15.0, "x", "up-to")
    assert "MPS" in row["baseline"]
    with pytest.raises(catalog.UnknownTerm, match=r"measure has no term 'overhed'; did you mean 'overhead'\?"):
        catalog.claims().filter(measure="overhed")


def test_comparison() -> None:
    found = catalog.compare(["tgs", "AntMan", "tgs"], ["year", "sharing", "claims.throughput"])
    assert found["year"] == {"tgs": 2023, "antman": 2020}
    assert found.fields == ("year", "sharing", "claims.throughput")
    assert "up to 15x" in str(found)
    with pytest.raises(catalog.UnknownField):
        catalog.compare(["tgs"], ["yaer"])
    with pytest.raises(catalog.NothingFound):
        catalog.compare([])


def test_search_ranks_the_name_first_and_says_where_it_found_the_words() -> None:
    assert catalog.search("gemini")[0].id == "gemini"
    found = catalog.search("unified memory")
    assert found[0].id == "tgs"
    assert found.records()[0]["found_in"] == "terms"
    assert catalog.search("thread blocks launched").records()[0]["found_in"] in {"summary", "mechanism"}
    assert "found in" in str(found)
    assert catalog.search("Härtig").ids == catalog.search("hartig").ids == ("fractos",)


def test_search_within_a_selection() -> None:
    found = catalog.systems(sharing="spatial").search("memory")
    assert found.ids
    assert set(found.ids) <= set(catalog.systems(sharing="spatial").ids)


def test_a_search_without_result_gets_the_nearest_word() -> None:
    with pytest.raises(catalog.NothingFound, match=r"contains 'premption'; did you mean 'preemption'\?"):
        catalog.search("premption")
    with pytest.raises(catalog.NothingFound, match="at least one word"):
        catalog.search(" -- ")


@pytest.mark.parametrize("query", ["tgs", "feedback rate", "serverless", "peking university", "memory isolation"])
def test_both_engines_find_the_same(query: str) -> None:
    words = _folded(query)
    with_fts5, without = SqliteIndex(_parts()).find(words, every=True), PlainIndex(_parts()).find(words, every=True)
    # FTS5 also takes words of the same stem, so it may find more, never less.
    assert set(without) <= set(with_fts5)
    assert without[0] in with_fts5[:3]


def test_search_works_without_fts5(monkeypatch: pytest.MonkeyPatch) -> None:
    import sqlite3

    from catalog import fulltext

    def refuse(parts: object) -> None:
        raise sqlite3.OperationalError("no such module: fts5")

    monkeypatch.setattr(fulltext, "SqliteIndex", refuse)
    fulltext._index.cache_clear()
    try:
        assert "tgs" in catalog.search("unified memory")
        assert isinstance(fulltext._index(), PlainIndex)
    finally:
        fulltext._index.cache_clear()


@given(st.text(max_size=30))
def test_a_query_finds_something_or_nothing_and_never_breaks(query: str) -> None:
    with contextlib.suppress(catalog.NothingFound):
        assert len(catalog.search(query)) > 0


@given(st.text(max_size=12), st.lists(st.text(min_size=1, max_size=12), max_size=5))
def test_the_nearest_name_is_one_of_the_known(name: str, known: list[str]) -> None:
    assert nearest(name, known) in {*known, None}


def test_an_exact_name_is_its_own_nearest() -> None:
    assert nearest("GPU_Memory", ["gpu-memory", "gpu"]) == "gpu-memory"
    assert nearest("", ["a"]) is None
    assert nearest("zzzz", ["abc"]) is None


def test_words_for_a_term_find_those_that_have_it_and_not_those_that_say_they_lack_it() -> None:
    swapping = {system.id for system in everything if "oversubscription" in system.classification.memory.terms}
    for query in ("unified memory", "swapping", "Memory oversubscription"):
        found = everything.search(query)
        assert set(found.ids) == swapping, "an entry that says what its system cannot do is not an answer"
        assert {row["found_in"] for row in found.records()} == {"terms"}
    assert set(everything.search("swapping Kubernetes").ids) < swapping
    for query, dimension, lacking in (
        ("memory isolation", "memory_isolation", {"none", "address-space", "not-stated"}),
        ("fault isolation", "fault_isolation", {"none", "not-stated"}),
        ("time sharing", "sharing", {"spatial", "exclusive", "disaggregation"}),
        ("memory limit", "memory", {"native", "oversubscription"}),
    ):
        for system in everything.search(query):
            assert not set(getattr(system.classification, dimension).terms) <= lacking, (query, system.id)
    # Both words of a synonym are needed: a system may well be unified, or have memory.
    assert not swapping.issuperset(everything.search("memory").ids)
