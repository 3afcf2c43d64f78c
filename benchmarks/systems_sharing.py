"""What `systems.py` measures of systems that share a GPU by a policy: each in a pool under its own, several runs."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from typing import Any

import sharing_phases as phases
from sharing_phases import PERSON, Scale
from sharing_pool import SharedPool

from catalog.phases import policy_figures, policy_of

#: How long a session is measured alone, seconds.
_ALONE_SECONDS = 1.0

Raw = dict[str, Any]
_Phase = Callable[[SharedPool, Scale], Raw]


def _with_pauses(pool: SharedPool, scale: Scale) -> Raw:
    return {**phases.gemini(pool, scale, 11.0), **phases.pausing(pool, scale, 1.5)}


#: By system: who has a notebook, and one run of its phase. Long enough for what the policy promises, and no longer.
PHASES: dict[str, tuple[list[str], _Phase]] = {
    "kubeshare": (["one", "two"], _with_pauses),
    "gemini": (["one", "two"], lambda pool, scale: phases.gemini(pool, scale, 11.0)),
    "gaiagpu": (["one", "two"], lambda pool, scale: phases.gaiagpu(pool, scale, 8.0)),
    "tgs": (["one", "two"], lambda pool, scale: phases.production(pool, scale, 2.0, 8.5)),
    "antman": (["one", "two"], lambda pool, scale: phases.production(pool, scale, 2.0, 5.5)),
    "reef": (["one", PERSON], lambda pool, scale: phases.reef(pool, scale, 3.5)),
    "paella": (["one", "two", PERSON], lambda pool, scale: phases.paella(pool, scale, 3.5)),
    "orion": (["one", "two"], lambda pool, scale: phases.production(pool, scale, 2.0, 5.5)),
    "muxflow": (["one", "two"], lambda pool, scale: phases.production(pool, scale, 2.0, 5.5)),
    "iadeep": (["one", "two"], lambda pool, scale: phases.pausing(pool, scale, 3.0)),
    "csur2017-survey": (["one", *["two"] * 2, *["three"] * 3], lambda pool, scale: phases.shares(pool, scale, 10.0)),
}
#: Policies under which a session alone is held against the driver.
_HELD_AGAINST_DRIVER = ("kubeshare", "gemini", "gaiagpu")


def measure_driver(device: str, scale: Scale, runs: int) -> tuple[str, float]:
    """Calibrate; return the device's kind, and the work done in a second by one session that nothing holds back."""
    with SharedPool(device, "driver", ["one"]) as pool:
        phases.calibrate(pool, scale)
        return pool.device_kind, median(_alone(pool, scale) for _ in range(runs))


def measure_policy(device: str, system: str, scale: Scale, runs: int, driver_rate: float) -> list[Raw]:
    """Return what the phase of ``system`` gives under its policy, run by run."""
    owners, phase = PHASES[system]
    with SharedPool(device, policy_of(system), owners) as pool:
        found = []
        for _ in range(runs):
            raw: Raw = {}
            if system in _HELD_AGAINST_DRIVER:
                pool.set_terms({"one": {"request": 1.0, "limit": 1.0}, "two": {"request": 0.0}})
                raw = {"driver_rate": driver_rate, "alone_rate": _alone(pool, scale)}
            found.append({**raw, **phase(pool, scale)})
    return found


def _alone(pool: SharedPool, scale: Scale) -> float:
    """Return the work done in a second by one session alone."""
    order = [(pool.of("one"), scale.hog(0.2e-3))]
    answers, _ = pool.run(order, scale.seconds(_ALONE_SECONDS), phases.GRACE_SECONDS)
    return phases.work(order, answers)


def figures(policy: str, raw: Raw) -> dict[tuple[str, str], float]:
    """Return the figures of one run, by system and name."""
    found = {(policy, name): value for name, value in policy_figures(policy, raw).items()}
    if "alone_rate" in raw:
        found[policy, "overhead"] = 100 * (raw["driver_rate"] / raw["alone_rate"] - 1)
    if "pausing_alone" in raw:
        found[policy, "throughput"] = raw["pausing_together"] / raw["pausing_alone"]
    return found
