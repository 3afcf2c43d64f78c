"""The numbers of claims brought to what can be compared: ratios to the baseline, or amounts in base units.

A paper says "up to 15x", "4 % slower", "40 % less" or "98.5 % of native". With the claim's form each of them is one
ratio, new over baseline, so that claims of one measure can be filtered, sorted and drawn side by side. Numbers of a
thing by itself, 40 us or 76 %, are amounts in base units. How a number was meant ("up to", "about") stays with the
claim: what is compared is the number as stated, or, of "below" and "above", what comes next to it.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable

import msgspec

from catalog.errors import CatalogError
from catalog.evidence import Claim
from catalog.taxonomy import Measure, taxonomy

__all__ = ["Amount", "Limit", "amounts", "order", "within"]

_SIGNS = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt}
#: How a sign compares with a number that is itself not reached.
_OPEN = {("below", "<"): "<=", ("below", ">="): ">", ("above", ">"): ">=", ("above", "<="): "<"}
_LIMIT = re.compile(r"(>=|<=|>|<)\s*(\d+(?:\.\d+)?)\s*(.*)")


class Amount(msgspec.Struct, frozen=True):
    """One number of a claim: a ``ratio`` to the baseline, or an amount of what its unit measures."""

    number: float
    kind: str
    """``ratio``; or ``fraction``, ``time``, ``size``, … for what stands by itself."""


def amounts(claim: Claim) -> tuple[Amount, ...]:
    """Return the comparable numbers of ``claim``, both ends of a range; none where the source gives words."""
    if claim.value is None:
        return ()
    unit = taxonomy().units[claim.unit]
    ends = [end * unit.factor for end in (claim.value, claim.value_to) if end is not None]
    if claim.form != "amount":
        return tuple(Amount(_ratio(claim.form, end), "ratio") for end in ends)
    kind = "fraction" if unit.measures == "ratio" else unit.measures
    if claim.bound == "from-to":  # what it came to, and how that stands to what it was
        before, after = ends
        return (Amount(after / before, "ratio"), Amount(after, kind)) if before else (Amount(after, kind),)
    return tuple(Amount(end, kind) for end in ends)


def _ratio(form: str, number: float) -> float:
    if form == "times-less":
        return 1 / number
    return {"more": 1 + number, "less": 1 - number}.get(form, number)


def order(claims: Iterable[Claim], measure: Measure) -> tuple[int, str, float]:
    """Return what sorts a system by its claims of one measure, least first: ratios, then amounts kind by kind."""
    found = [amount for claim in claims for amount in amounts(claim)]
    if not found:
        return (2, "", 0.0)
    kind = "ratio" if any(amount.kind == "ratio" for amount in found) else found[0].kind
    best = max if measure.better == "higher" else min
    return (int(kind != "ratio"), kind, best(amount.number for amount in found if amount.kind == kind))


def _side(claim: Claim) -> str:
    """Return on which side of a claim's numbers, as :func:`amounts` has them, what is claimed lies without them."""
    other = {"below": "above", "above": "below"}
    return other.get(claim.bound, "") if claim.form in {"less", "times-less"} else claim.bound


class Limit(msgspec.Struct, frozen=True):
    """A comparison such as ``<5``, ``>=1.5x`` or ``<40us``, for the claims of one measure."""

    measure: Measure
    sign: str
    number: float
    unit: str

    @classmethod
    def of(cls, text: str, measure: Measure) -> Limit | None:
        """Read a comparison; none if ``text`` is not one.

        Raises
        ------
        CatalogError
            If its unit is unknown, or is missing where the measure has none of its own.
        """
        match = _LIMIT.fullmatch(text.strip())
        if match is None:
            return None
        unit = match[3].strip() or measure.unit
        if unit not in taxonomy().units:
            example = measure.unit or ("us" if measure.id == "preemption" else next(iter(taxonomy().units)))
            said = f"has the unknown unit {unit!r}" if unit else "needs a unit"
            raise CatalogError(f"{measure.id}{text} {said}; write for example {match[1]}{match[2]}{example}")
        return cls(measure, match[1], float(match[2]), unit)

    def fits(self, claim: Claim) -> bool:
        """Return whether a number of ``claim`` is of this kind and within the limit.

        "Below 5 %" does not reach 5 %, so it is within ``<5`` and not within ``>=5``.
        """
        unit = taxonomy().units[self.unit]
        kinds = {"ratio", "fraction"} if unit.measures == "ratio" else {unit.measures}
        limit, compare = self.number * unit.factor, _SIGNS[_OPEN.get((_side(claim), self.sign), self.sign)]
        shift = 1.0 if self.measure.change else 0.0
        return any(
            compare(round(amount.number - (shift if amount.kind == "ratio" else 0.0), 12), limit)
            for amount in amounts(claim)
            if amount.kind in kinds
        )


def within(limit: str, number: float, unit: str) -> bool:
    """Return whether ``number`` in ``unit`` is within a limit such as ``>=95%`` or ``<=4ms``, or two: ``>=25%, <=35%``.

    Raises
    ------
    CatalogError
        If a limit cannot be read, or its unit measures something else.
    """
    held = [_one_holds(each.strip(), number, unit) for each in limit.split(",")]  # a wrong one behind too
    return all(held)


def _one_holds(limit: str, number: float, unit: str) -> bool:
    units = taxonomy().units
    match = _LIMIT.fullmatch(limit)
    other = units.get(match[3].strip()) if match else None
    if match is None or other is None or unit not in units or other.measures != units[unit].measures:
        raise CatalogError(f"{limit!r} is no limit on a number in {unit!r}; write for example >=95{unit}")
    return bool(_SIGNS[match[1]](number * units[unit].factor, float(match[2]) * other.factor))
