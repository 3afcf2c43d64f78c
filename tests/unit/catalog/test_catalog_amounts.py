"""Claims of one measure on one scale: what each form of a number says of new over baseline."""

from __future__ import annotations

from typing import Any

import pytest

import catalog
from catalog.amounts import Amount, Limit, amounts
from catalog.errors import CatalogError
from catalog.evidence import Claim
from catalog.taxonomy import taxonomy

MEASURES = taxonomy().measures


def claim(measure: str, value: float | None, unit: str = "", **more: Any) -> Claim:
    about: dict[str, Any] = {"id": "it", "kind": "result", "quantity": "it", "sources": [], "confidence": "high"}
    return Claim(measure=measure, value=value, unit=unit, **about, **more)


@pytest.mark.parametrize(
    ("said", "ratio"),
    [
        (claim("throughput", 15, "x", form="times"), 15),
        (claim("latency", 4, "x", form="times-less"), 0.25),
        (claim("overhead", 4, "%", form="more"), 1.04),
        (claim("cost", 40, "%", form="less"), 0.6),
        (claim("bandwidth", 98.5, "%", form="share-of"), 0.985),
        (claim("utilisation", 26, "%", bound="from-to", value_to=76), 76 / 26),
    ],
)
def test_every_form_is_one_ratio(said: Claim, ratio: float) -> None:
    assert amounts(said)[0] == Amount(pytest.approx(ratio), "ratio")


def test_amounts_stand_in_base_units_and_words_in_none() -> None:
    assert amounts(claim("preemption", 71, "us", bound="between", value_to=288)) == (
        Amount(pytest.approx(71e-6), "time"),
        Amount(pytest.approx(288e-6), "time"),
    )
    assert amounts(claim("utilisation", 7.3, "%")) == (Amount(pytest.approx(0.073), "fraction"),)
    assert amounts(claim("overhead", None, expression="little", form="more")) == ()


@pytest.mark.parametrize(
    ("measure", "limit", "said", "fits"),
    [
        ("overhead", "<5", claim("overhead", 4.9, "%", form="more"), True),
        ("overhead", "<5", claim("overhead", 5, "%", form="more"), False),
        ("overhead", "<=5", claim("overhead", 5, "%", form="more"), True),
        ("overhead", "<5", claim("overhead", 5, "%", form="more", bound="below"), True),
        ("overhead", ">=5", claim("overhead", 5, "%", form="more", bound="below"), False),
        ("throughput", ">0.5", claim("throughput", 50, "%", form="less", bound="below"), True),
        ("throughput", "<=1.5x", claim("throughput", 50, "%", form="more", bound="above"), False),
        ("overhead", ">=1x", claim("overhead", 188.9, "%", form="more"), True),
        ("throughput", ">2", claim("throughput", 20, "%", form="more"), False),
        ("throughput", ">1.1", claim("throughput", 20, "%", form="more"), True),
        ("latency", "<0.5", claim("latency", 2.1, "x", form="times-less"), True),
        ("preemption", "< 50 us", claim("preemption", 36.4, "us"), True),
        ("preemption", "<0.03ms", claim("preemption", 36.4, "us"), False),
        ("preemption", "<50us", claim("preemption", 2, "x", form="times-less"), False),
        ("utilisation", ">5", claim("utilisation", 7.3, "%"), True),
    ],
)
def test_a_limit_is_in_the_measures_own_terms(measure: str, limit: str, said: Claim, fits: bool) -> None:
    found = Limit.of(limit, MEASURES[measure])
    assert found is not None
    assert found.fits(said) == fits


def test_what_is_no_limit_is_words_and_a_wrong_unit_is_said() -> None:
    assert Limit.of("PyTorch", MEASURES["overhead"]) is None
    with pytest.raises(CatalogError, match=r"^preemption<50 needs a unit; write for example <50us$"):
        Limit.of("<50", MEASURES["preemption"])
    with pytest.raises(
        CatalogError, match=r"^overhead<5furlongs has the unknown unit 'furlongs'; write for example <5%$"
    ):
        Limit.of("<5furlongs", MEASURES["overhead"])


def test_systems_are_filtered_and_sorted_by_what_they_claim() -> None:
    everything = catalog.systems()
    low = everything.filter(**{"claims.overhead": "<5"})
    assert {"reef", "rcuda", "nvshare", "xsched", "gemini"} <= set(low.ids)
    assert not {"tally", "kubeshare", "tgs"} & set(low.ids), "7.2 %, below 10, and 188.9 % are not"
    assert set(everything.filter(**{"claims.overhead": [">5", "<8"]}).ids) >= {"tally"}
    ordered = low.sort("claims.overhead")
    assert ordered.ids.index("nvshare") < ordered.ids.index("reef") < ordered.ids.index("rcuda")
    last = everything.sort("claims.overhead", reverse=True)
    assert not last[-1].claims or not catalog.fields()["claims.overhead"].values(last[-1])


def test_the_overheads_of_reef_and_tally_are_overheads() -> None:
    for system, name in (("reef", "real-time-latency"), ("tally", "tail-latency"), ("tgs", "third-party-tail")):
        found = next(each for each in catalog.get(system).claims if each.id == name)
        assert (found.measure, found.form) == ("overhead", "more")


def test_claims_are_sorted_within_what_can_be_compared() -> None:
    found = catalog.claims().filter(measure="latency", kind="result").sort()
    kinds = [item.amounts[0].kind if item.amounts else "" for item in found]
    assert kinds == sorted(kinds, key=lambda kind: (kind != "ratio", not kind, kind))
    ratios = [min(x.number for x in item.amounts if x.kind == "ratio") for item in found if item.ratio is not None]
    assert ratios == sorted(ratios)
