"""Each system of the catalogue that this pool carries, by its own headline quantity: one record a system.

``python benchmarks/systems.py`` starts pools of its own on this machine, one after the other, and measures every system
three times; ``--only rcuda,tgs`` some of them. A record has the system, each figure with the median and the values of
its runs, what was measured raw, machine, versions and commit; verdicts of ``%catalog`` follow from the newest ones. The
whole takes about five minutes on a GPU. Without one, or with ``--quick``, it only shows that it works: such records go
to the folder that ``--out`` names, and no verdict follows from them. Exit status 1 if a system could not be measured.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import traceback
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic

import systems_remote as remote
import systems_sharing as sharing
from run_record import circumstances
from sharing_phases import Scale

from catalog.figures import FIGURES
from catalog.phases import policy_of

RESULTS = Path(__file__).parent / "results"
_LINKS = ("rcuda", "lupine", "dgsf", "dxpu", "fractos", "orionx")
_PLACES = ("dgsf", "dxpu", "osr2023-serverless-gpu", "bitfusion", "orionx")
_REMOTE = tuple(dict.fromkeys((*_LINKS, *_PLACES)))
SYSTEMS = (*_REMOTE, *sharing.PHASES)
_Runs = dict[tuple[str, str], list[float]]


class Records:
    """Writes a record for each system, at the end of the run or of the part that measured it."""

    def __init__(self, out: Path, is_quick: bool) -> None:
        out.mkdir(parents=True, exist_ok=True)
        self._out, self._is_quick = out, is_quick
        self._about = circumstances()
        self.device = "cpu"
        self.problems: list[str] = []

    def write(self, system: str, runs: _Runs, raw: object, seconds: float) -> None:
        """Write the record of ``system``, and say its figures."""
        now = datetime.now(UTC)
        gpu = str(self._about["machine"]["gpu"]) if self.device == "cuda" else "CPU device"
        figures = [
            {
                "system": system,
                "figure": name,
                "quantity": FIGURES[system, name].quantity,
                "value": round(statistics.median(values), 4),
                "unit": FIGURES[system, name].unit,
                "runs": [round(value, 4) for value in values],
                "policy": policy_of(system) if system in sharing.PHASES else "",
                "hardware": gpu,
                "commit": self._about["commit"],
                "recorded": f"{now:%Y-%m-%d}",
            }
            for (of, name), values in runs.items()
            if of == system
        ]
        content = {
            "benchmark": "systems",
            "date": now.isoformat(timespec="seconds"),
            **self._about,
            "device": self.device,
            "is_quick": self._is_quick or self.device != "cuda",
            "seconds": round(seconds, 1),
            "catalogue": figures,
            "raw": raw,
        }
        path = self._out / f"systems-{system}-{self.device}-{now:%Y%m%d-%H%M%S}.json"
        path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
        for each in figures:
            spread = f"{min(each['runs']):.4g} to {max(each['runs']):.4g}"
            print(f"{system:22} {each['figure']:18} {each['value']:>9.4g} {each['unit']:2} ({spread})", flush=True)

    def attempt(self, what: str, measure: Callable[[], None]) -> None:
        """Measure; what goes wrong is said and costs the others nothing."""
        try:
            measure()
        except Exception:  # whatever one system runs into, the others are measured
            self.problems.append(what)
            print(f"FAILED {what}:\n{traceback.format_exc(limit=6)}", file=sys.stderr, flush=True)


def gathered(each_run: Iterable[dict[tuple[str, str], float]]) -> _Runs:
    """Return the values of each figure, in the order of the runs."""
    found: _Runs = {}
    for run in each_run:
        for key, value in run.items():
            found.setdefault(key, []).append(value)
    return found


def measure_remote(records: Records, wanted: set[str], options: argparse.Namespace) -> None:
    """Measure the systems that reach a GPU from afar or lend it."""
    began = monotonic()
    links, records.device = remote.measure_links(options.device, options.quick, options.runs)
    runs = gathered(map(remote.link_figures, links))
    places = remote.measure_places(options.device, options.runs) if wanted & {*_PLACES} else []
    for key, values in gathered(map(remote.place_figures, places)).items():
        runs[key] = values
    for system in _REMOTE:
        if system in wanted:
            records.write(system, runs, {"links": links, "places": places}, monotonic() - began)


def measure_sharing(records: Records, wanted: list[str], options: argparse.Namespace) -> None:
    """Measure the systems that share a GPU by a policy."""
    scale, harvests = Scale(options.quick), {}
    records.device, driver_rate = sharing.measure_driver(options.device, scale, options.runs)

    def measure(policy: str) -> None:
        began = monotonic()
        raw = sharing.measure_policy(options.device, policy, scale, options.runs, driver_rate)
        runs = gathered(sharing.figures(policy, run) for run in raw)
        if (policy, "harvest") in runs:
            harvests[policy] = runs[policy, "harvest"]
        if policy == "tgs" and "antman" in harvests:
            pairs = zip(harvests["tgs"], harvests["antman"], strict=True)
            runs["tgs", "harvest-to-antman"] = [ours / theirs for ours, theirs in pairs if theirs]
        records.write(policy, runs, raw, monotonic() - began)

    for policy in sorted(wanted, key=lambda policy: policy == "tgs"):  # which is held against antman
        records.attempt(policy, lambda policy=policy: measure(policy))  # type: ignore[misc]


def main() -> int:
    """Measure what is wanted."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--device", choices=("auto", "cuda", "cpu"), default="auto", help="what to compute on")
    parser.add_argument("--quick", action="store_true", help="short phases: shows that it works, measures nothing")
    parser.add_argument("--runs", type=int, default=3, help="how often each system is measured")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for the records")
    parser.add_argument("--only", default=",".join(SYSTEMS), help=f"systems, of {', '.join(SYSTEMS)}")
    options = parser.parse_args()
    wanted = [name for name in SYSTEMS if name in options.only.split(",")]
    if unknown := set(options.only.split(",")) - set(SYSTEMS):
        parser.error(f"not measured here: {', '.join(sorted(unknown))}; choose of {', '.join(SYSTEMS)}")
    if options.out == RESULTS and (options.quick or options.device == "cpu"):
        parser.error("what is not measured on a GPU is no result: name another folder with --out")
    began, records = monotonic(), Records(options.out, options.quick)
    if far := set(wanted) & set(_REMOTE):
        records.attempt("remoting", lambda: measure_remote(records, far, options))
    if policies := [name for name in wanted if name in sharing.PHASES]:
        records.attempt("sharing", lambda: measure_sharing(records, policies, options))
    print(f"{len(wanted)} systems in {monotonic() - began:.0f} s, written to {options.out}")
    return 1 if records.problems else 0


if __name__ == "__main__":
    sys.exit(main())
