"""What sharing promises, and whether the figures of a run of `sharing.py` keep it. A missing phase is left out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple


class Goal(NamedTuple):
    """One promise."""

    name: str
    measured: str
    wanted: str
    is_met: bool


def goals(figures: dict[str, Any]) -> list[Goal]:
    """Return every promise that there are figures for."""
    found: list[Goal] = []
    for part in (_costs, _shares, _pool_shares, _throughput, _interactive, _returning, _policies, _in_space):
        found += part(figures)
    return found


def _costs(figures: dict[str, Any]) -> Iterator[Goal]:
    if gate := figures.get("gate"):
        most = max(gate["open_ns"], gate["turn_ns"])
        yield Goal("a look at the gate", f"{gate['open_ns']:.0f} to {most:.0f} ns", "under 200 ns per op", most < 200)
    if arbiter := figures.get("arbiter"):
        idle, busy = 100 * arbiter["idle"], 100 * arbiter["busy"]
        measured = f"{idle:.2f} % of a core idle, {busy:.2f} % busy"
        yield Goal(f"arbiter with {arbiter['sessions']} sessions", measured, "under 2 %", max(idle, busy) < 2)


def _shares(figures: dict[str, Any]) -> Iterator[Goal]:
    for name, title in (("shares", "users with 1, 2, 3 and 6 notebooks"), ("weights", "users weighted 1:2:4")):
        if found := figures.get(f"fair_share: {name}"):
            worst = 100 * max(found["worst_window_error"].values())
            whole = 100 * max(abs(found["part"][user] - fair) for user, fair in found["fair"].items())
            measured = f"{worst:.2f} points off at most ({whole:.2f} over the whole)"
            wanted = f"within 2 % of the device over any {found['window_s']:g} s in which all want it"
            yield Goal(title, measured, wanted, worst <= 2)


def _pool_shares(figures: dict[str, Any]) -> Iterator[Goal]:
    for name in ("packed", "spread"):
        if found := figures.get(f"pool: {name}"):
            worst = 100 * max(found["worst_window_error"][user] / fair for user, fair in found["fair"].items())
            placed = ", ".join(f"{user} {'+'.join(map(str, count))}" for user, count in found["placed"].items())
            used, kept = 100 * found["used_of_time"] / found["devices"], 100 * found["work_rate"] / found["alone_rate"]
            measured = f"{worst:.2f} % off at most; {kept:.1f} % of the devices alone, used {used:.1f} % of the time"
            wanted = f"within 2 % of the fair share of the pool over any {found['window_s']:g} s, 98 % of the work"
            is_met = worst <= 2 and kept >= 98
            yield Goal(f"notebooks of two users on {found['devices']} devices ({placed})", measured, wanted, is_met)


def _throughput(figures: dict[str, Any]) -> Iterator[Goal]:
    ours, theirs = figures.get("fair_share: throughput", {}), figures.get("driver: throughput", {})
    for kernel, found in ours.items():
        kept = 100 * found["together"] / found["alone"]
        beside = theirs.get(kernel)
        measured, is_better = f"{kept:.1f} % of one alone", True
        if beside:
            measured += f"; by the driver {100 * beside['together'] / beside['alone']:.1f} %"
            is_better = found["together"] > beside["together"]
        wanted = "at least 97 %, above the driver"
        yield Goal(f"three users, {kernel} kernels", measured, wanted, kept >= 97 and is_better)
    for kernel, rates in figures.get("alone", {}).items():
        lost = 100 * (1 - rates["fair_share"] / rates["driver"])
        yield Goal(f"one user alone, {kernel} kernels", f"{lost:+.2f} % lost to the gate", "at most 1 %", lost <= 1)


def _interactive(figures: dict[str, Any]) -> Iterator[Goal]:
    ours, theirs = figures.get("fair_share: interactive", {}), figures.get("driver: interactive", {})
    for kernel, found in ours.items():
        if kernel == "alone":
            continue
        beside = theirs.get(kernel)
        measured = f"p50 {found['p50_ms']:.2f}, p99 {found['p99_ms']:.2f} ms"
        is_short = not kernel.endswith("ms")
        wanted, is_met = "p99 at most 1.5 ms", found["p99_ms"] <= 1.5
        if beside:
            measured += f"; driver {beside['p50_ms']:.2f}, {beside['p99_ms']:.2f}"
            if not is_short:
                wanted, is_met = "p99 at most the driver's", found["p99_ms"] <= beside["p99_ms"]
        yield Goal(f"an op every 20 ms beside three hogs, {kernel}", measured, wanted, is_met)
        if beside:
            ratio = 100 * found["hogs_work"] / beside["hogs_work"]
            yield Goal(
                f"those hogs, {kernel}", f"{ratio:.1f} % of what the driver lets them", "at least 100 %", ratio >= 100
            )


def _returning(figures: dict[str, Any]) -> Iterator[Goal]:
    if found := figures.get("fair_share: return"):
        worst = max(found["first_result_ms"])
        yield Goal("first result after a pause", f"{worst:.1f} ms at most", "within a turn (20 ms)", worst <= 20)


def _policies(figures: dict[str, Any]) -> Iterator[Goal]:
    if found := figures.get("gemini: promise"):
        part, terms = found["part"], found["terms"]
        is_met = all(t["request"] - 0.03 <= part[user] <= t["limit"] + 0.03 for user, t in terms.items())
        yield Goal("gemini: request and limit", _percent(part, terms), "50 to 60 and 20 to 30 %, within 3", is_met)
    for name in ("tgs", "antman"):
        if found := figures.get(f"{name}: promise"):
            kept, other = 100 * found["production_beside"] / found["production_alone"], 100 * found["part"]["two"]
            measured = f"production keeps {kept:.1f} %, the other uses {other:.1f} %"
            wanted = "at least 95 %, and 5 % or more for the other"
            yield Goal(f"{name}: production's rate", measured, wanted, kept >= 95 and other >= 5)
    if found := figures.get("gaiagpu: promise"):
        part, terms = found["part"], found["terms"]
        is_met = abs(part["one"] - 0.3) <= 0.05 and part["two"] >= 0.2
        yield Goal("gaiagpu: target, and growth", _percent(part, terms), "30 % within 5; 20 % or more", is_met)
    if found := figures.get("reef: promise"):
        alone, beside, hog = found["alone"]["p50_ms"], found["beside"], 100 * found["part"]["one"]
        most = alone + 2 * found["kernel_ms"] + 0.5  # and what waking up costs
        measured = f"p50 {beside['p50_ms']:.2f}, p99 {beside['p99_ms']:.2f} ms; the hog uses {hog:.0f} %"
        wanted = f"p99 at most two of its kernels later than alone ({most:.1f} ms); 75 % or more for the hog"
        yield Goal("reef: priority beside best effort", measured, wanted, beside["p99_ms"] <= most and hog >= 75)
    if found := figures.get("paella: promise"):
        hog = 100 * found["part"]["one"]
        measured = f"p50 {found['p50_ms']:.2f}, p95 {found['p95_ms']:.2f} ms; the long one uses {hog:.0f} %"
        is_met = found["p50_ms"] <= 4 and found["p95_ms"] <= 20 and hog >= 20
        wanted = "p50 at most 4 ms, p95 within a dispatch (20 ms); 20 % or more for the long one"
        yield Goal("paella: short cells first", measured, wanted, is_met)


def _in_space(figures: dict[str, Any]) -> Iterator[Goal]:
    """Policies for kernels that run at the same time, on a device that alternates between processes."""
    if found := figures.get("orion: promise"):
        kept, other = 100 * found["production_beside"] / found["production_alone"], 100 * found["part"]["two"]
        measured = f"priority work keeps {kept:.1f} %, the other uses {other:.1f} %"
        wanted = "at least 90 %, and 20 % or more for the other"
        yield Goal("orion: priority work's rate", measured, wanted, kept >= 90 and other >= 20)
    if found := figures.get("muxflow: promise"):
        kept, other = 100 * found["production_beside"] / found["production_alone"], 100 * found["part"]["two"]
        measured = f"offline work uses {other:.1f} %, online work keeps {kept:.1f} % of its rate"
        wanted = "20 % or more, and no more than the half that online work leaves, within 5"
        yield Goal("muxflow: the complement", measured, wanted, 20 <= other <= 55)
    if found := figures.get("iadeep: promise"):
        ratio = found["pausing_together"] / found["pausing_alone"]
        measured, wanted = f"{ratio:.2f} times the work of one", "1.4 times or more: each has the other's pauses"
        yield Goal("iadeep: two that pause half of the time", measured, wanted, ratio >= 1.4)


def _percent(part: dict[str, float], users: dict[str, Any]) -> str:
    return ", ".join(f"{100 * part[user]:.1f} %" for user in users)
