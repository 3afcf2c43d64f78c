"""Several users on one GPU: shares, weights, throughput, latency and each policy's promise, in one run.

``python benchmarks/sharing.py`` starts pools of its own on this machine, one after the other, each under another
policy, with real notebook processes of several users; measures; prints one line for each goal; and writes figures,
these lines and a plot into one folder (``--out``, else ``benchmarks/results/``). The baseline is the GPU driver's own
slicing (policy ``driver``), in the same run. Figures are written after every phase, and every phase has a limit of its
own, so that what fails costs nothing but itself. The whole takes under five minutes; ``--only`` runs a part of it: a
policy, a phase ("shares"), or one phase of one policy ("driver: throughput"), several separated by commas. ``--only
pool``, for a machine with two GPUs or four, measures shares over all of them, in two minutes. ``--device
cpu --quick`` only shows that it works. Exit status 1 if a goal is missed on a GPU.
"""

from __future__ import annotations

import argparse
import json
import sys
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

import sharing_costs as costs
import sharing_phases as phases
from run_record import circumstances
from sharing_goals import Goal, goals
from sharing_phases import NOTEBOOKS, PERSON, Scale
from sharing_pool import SharedPool

from gpu_backend.node.inventory import devices

RESULTS = Path(__file__).parent / "results"
#: After this long no further phase is begun, seconds.
_BUDGET_SECONDS = 250.0
_LONG_KERNELS = (20e-6, 0.2e-3, 2e-3)


class Phase(NamedTuple):
    """One thing to measure."""

    name: str
    measure: Callable[[SharedPool, Scale], dict[str, Any]]


class Run:
    """Figures as they come, on disk after each."""

    def __init__(self, out: Path, device: str, is_quick: bool) -> None:
        now = datetime.now(UTC)
        out.mkdir(parents=True, exist_ok=True)
        self.file = out / f"sharing-{device}-{now:%Y%m%d-%H%M%S}.json"
        self.started = monotonic()
        self.content: dict[str, Any] = {
            "benchmark": "sharing",
            "date": now.isoformat(timespec="seconds"),
            **circumstances(),
            "is_quick": is_quick,
            "figures": {},
            "seconds": {},
            "problems": {},
        }

    @property
    def figures(self) -> dict[str, Any]:
        """What was measured, by phase."""
        found: dict[str, Any] = self.content["figures"]
        return found

    def take(self, name: str, measure: Callable[[], dict[str, Any]]) -> None:
        """Measure one phase; what goes wrong is noted and costs the others nothing."""
        began = monotonic()
        if began - self.started > _BUDGET_SECONDS:
            self.content["problems"][name] = "left out: the time was up"
        else:
            try:
                self.figures[name] = measure()
            except Exception:  # whatever one phase runs into, the others are measured
                self.content["problems"][name] = traceback.format_exc(limit=4)
                print(f"{name} failed:\n{traceback.format_exc(limit=4)}", file=sys.stderr)
        self.content["seconds"][name] = monotonic() - began
        self.write()
        print(f"{monotonic() - self.started:6.1f} s  {name}", flush=True)

    def write(self) -> None:
        """Write what there is."""
        fresh = self.file.with_suffix(".part")
        fresh.write_text(json.dumps(self.content, indent=1, ensure_ascii=False) + "\n")
        fresh.replace(self.file)


def pools(is_quick: bool) -> list[tuple[str, list[str], list[Phase]]]:
    """Return what is measured: per pool its policy, its notebooks' owners, and the phases.

    What is compared with the driver is measured in a pool with as many notebooks as the driver's.
    """
    counts = {"one": 1, "two": 2} if is_quick else NOTEBOOKS
    everybody = [user for user, count in counts.items() for _ in range(count)] + [PERSON]
    few = [*[*counts][:3], PERSON]
    long = _LONG_KERNELS[1:2] if is_quick else _LONG_KERNELS
    rates = long if is_quick else _LONG_KERNELS[:2]
    both = [
        Phase("throughput", lambda pool, scale: phases.throughput(pool, scale, rates)),
        Phase("interactive", lambda pool, scale: phases.interactive(pool, scale, long)),
    ]
    return [
        # One after the other and in pools alike: with kernels of 20 µs, how many notebooks there are shows too.
        ("fair_share", few, both),
        ("driver", few, both),
        (
            "fair_share",
            everybody,
            [Phase("shares", phases.shares), Phase("weights", phases.weights), Phase("return", phases.returning)],
        ),
        ("gemini", few[:2], [Phase("promise", phases.gemini)]),
        ("tgs", few[:2], [Phase("promise", lambda pool, scale: phases.production(pool, scale, 3.0, 11.0))]),
        ("gaiagpu", few[:2], [Phase("promise", phases.gaiagpu)]),
        ("antman", few[:2], [Phase("promise", lambda pool, scale: phases.production(pool, scale, 2.5, 7.0))]),
        ("reef", [few[0], PERSON], [Phase("promise", phases.reef)]),
        ("paella", [*few[:2], PERSON], [Phase("promise", phases.paella)]),
        ("orion", few[:2], [Phase("promise", lambda pool, scale: phases.production(pool, scale, 2.5, 7.0))]),
        ("muxflow", few[:2], [Phase("promise", lambda pool, scale: phases.production(pool, scale, 2.5, 7.0))]),
        ("iadeep", few[:2], [Phase("promise", phases.pausing)]),
    ]


def measure_pool(run: Run, device: str, policy: str, owners: list[str], wanted: list[Phase], scale: Scale) -> None:
    """Measure the phases of one pool."""
    try:
        with SharedPool(device, policy, owners) as pool:
            run.content["device"] = pool.device_kind
            if not scale.step_seconds:
                run.take("calibration", lambda: phases.calibrate(pool, scale))
            for phase in wanted:
                run.take(f"{policy}: {phase.name}", lambda phase=phase: phase.measure(pool, scale))  # type: ignore[misc]
    except Exception:  # a pool that does not come up must not cost the others
        run.content["problems"][policy] = traceback.format_exc(limit=4)
        print(f"the pool under {policy} failed:\n{traceback.format_exc(limit=4)}", file=sys.stderr)
        run.write()


def measure_alone(run: Run, device: str, scale: Scale, is_quick: bool) -> None:
    """Measure what one notebook alone loses to the gate, beside a pool without gates."""
    kernels = _LONG_KERNELS[1:2] if is_quick else _LONG_KERNELS[:2]
    try:
        with (
            SharedPool(device, "fair_share", ["one"] * 2) as ours,
            SharedPool(device, "driver", ["one"] * 2) as drivers,
        ):
            run.content["device"] = ours.device_kind
            run.take("calibration", lambda: phases.calibrate(ours, scale))
            run.take("alone", lambda: phases.alone(ours, drivers, scale, kernels))
    except Exception:  # as in `measure_pool`
        run.content["problems"]["alone"] = traceback.format_exc(limit=4)
        print(f"the pools for one user alone failed:\n{traceback.format_exc(limit=4)}", file=sys.stderr)
        run.write()


def measure_devices(run: Run, device: str, scale: Scale) -> None:
    """Measure shares over two devices or four: one user has many more notebooks than another, packed and spread.

    Packed by fours the few share a device with the many and have the others of their half alone, if there are any.
    """
    count = len(devices(device, 2))
    if count % 2:
        run.content["problems"]["pool"] = f"left out: there are {count} devices, which is not an even number"
        return
    few = 2 * count - 2
    owners = ["many"] * (4 * count - few) + ["few"] * few
    for name, rule, places, seconds in (("packed", "best_fit", 4, 18.0), ("spread", "spread", 64, 12.0)):
        try:
            with SharedPool(
                device, "fair_share", owners, is_in_order=name == "packed", placement=(rule,),
                sessions_per_device=places, cpu_devices=count,
            ) as pool:  # fmt: skip
                run.content["device"] = pool.device_kind
                if not scale.step_seconds:
                    run.take("calibration", lambda pool=pool: phases.calibrate(pool, scale))  # type: ignore[misc]
                run.take(f"pool: {name}", lambda pool=pool, seconds=seconds: phases.pool_shares(pool, scale, seconds))  # type: ignore[misc]
        except Exception:  # as in `measure_pool`
            run.content["problems"][f"pool: {name}"] = traceback.format_exc(limit=4)
            print(f"the pool {name} failed:\n{traceback.format_exc(limit=4)}", file=sys.stderr)
            run.write()


def main() -> int:
    """Run everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=("auto", "cuda", "cpu"), default="auto", help="what to compute on")
    parser.add_argument("--quick", action="store_true", help="short phases: shows that it works, measures nothing")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for figures, summary and plot")
    parser.add_argument("--only", default="", help="what to measure, separated by commas; everything if empty")
    options = parser.parse_args()
    run, scale = Run(options.out, options.device, options.quick), Scale(options.quick)
    only = {word.strip() for word in options.only.split(",") if word.strip()}
    if not only or "gate" in only:
        run.take("gate", costs.gate_cost)
    if not only or "arbiter" in only:
        run.take("arbiter", lambda: costs.arbiter_load(scale.seconds(3.0)))
    if not only or "alone" in only:
        measure_alone(run, options.device, scale, options.quick)
    if "pool" in only:
        measure_devices(run, options.device, scale)
    for policy, owners, phases_of_it in pools(options.quick):
        wanted = [one for one in phases_of_it if not only or only & {policy, one.name, f"{policy}: {one.name}"}]
        if wanted:
            measure_pool(run, options.device, policy, owners, wanted, scale)
    return finish(run, options.quick)


def finish(run: Run, is_quick: bool) -> int:
    """Judge the figures, write and print the summary, draw the plot; return the exit status."""
    found = goals(run.figures)
    run.content["goals"] = [goal._asdict() for goal in found]
    run.content["total_seconds"] = monotonic() - run.started
    run.write()
    on_gpu = run.content.get("device") == "cuda" and not is_quick
    text = summary(run, found, on_gpu)
    run.file.with_suffix(".txt").write_text(text)
    print(text)
    try:
        from sharing_plot import save

        save(run.figures, run.file.with_suffix(".png"))
    except Exception:  # the figures are what counts
        traceback.print_exc()
    print(f"written to {run.file.parent} in {run.content['total_seconds']:.0f} s")
    is_good = not run.content["problems"] and all(goal.is_met for goal in found)
    return 0 if is_good or not on_gpu else 1


def summary(run: Run, found: list[Goal], on_gpu: bool) -> str:
    """Return what was found, a line for each goal."""
    content, machine = run.content, run.content["machine"]
    where = machine["gpu"] if on_gpu else "not on a GPU, or a quick run: goals do not apply"
    lines = [f"Sharing one GPU: {content['date']}, commit {content['commit']}, {machine['cores']} cores, {where}"]
    for goal in found:
        word = ("met   " if goal.is_met else "MISSED") if on_gpu else "      "
        lines.append(f"{word} {goal.name}: {goal.measured} (goal: {goal.wanted})")
    lines += [f"FAILED {name}: {problem.strip().splitlines()[-1]}" for name, problem in content["problems"].items()]
    seconds = ", ".join(f"{name} {taken:.0f}" for name, taken in content["seconds"].items())
    lines.append(f"{content['total_seconds']:.0f} s in all: {seconds}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
