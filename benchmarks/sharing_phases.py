"""What `sharing.py` measures: each function is one phase, on a pool that is up, and returns plain figures."""

from __future__ import annotations

from statistics import median
from time import monotonic
from typing import Any

from sharing_pool import Notebook, SharedPool

from gpu_backend.arbiter.policies.gemini import Gemini

#: Kernels of the users with 1, 2, 3 and 6 notebooks, seconds.
KERNELS = {"one": 10e-6, "two": 0.2e-3, "three": 5e-3, "six": 0.1}
NOTEBOOKS = {"one": 1, "two": 2, "three": 3, "six": 6}
PERSON = "person"
WINDOW_SECONDS = 5.0
#: From when on shares are judged, seconds: all begin at once on an idle device, where nobody need ask before the first
#: kernel; up to six of 100 ms are then under way together, and it takes so long until that is paid back.
SETTLED_SECONDS = 3.0
#: How long after the end of a phase notebooks may take to finish what they began.
GRACE_SECONDS = 8.0
#: The first ops of one who ticks, which compile what they use and are of no latency.
_FIRST_TICKS = 3


class Scale:
    """How long phases are and what their kernels take: the real run, or a quick one that only shows that it works."""

    def __init__(self, is_quick: bool, step_seconds: float = 0.0) -> None:
        self.is_quick = is_quick
        self.step_seconds = step_seconds

    def seconds(self, wanted: float) -> float:
        """Return the length of a phase."""
        return min(wanted, 1.5) if self.is_quick else wanted

    def kernel(self, wanted: float) -> float:
        """Return the length of a kernel: a processor's launches are slower than a GPU's."""
        return max(wanted, 0.5e-3) if self.is_quick else wanted

    def hog(self, wanted: float, **more: Any) -> dict[str, Any]:
        """Return the order to launch kernels of that length."""
        length = self.kernel(wanted)
        return {"do": "hog", "steps": max(1, round(length / self.step_seconds)), "kernel_seconds": length, **more}


def calibrate(pool: SharedPool, scale: Scale) -> dict[str, Any]:
    """Learn how long a step of the kernel takes; kernels are work, not time, so that slicing shows."""
    notebook = pool.notebooks[0]
    notebook.tell("calibrate", steps=200_000)
    scale.step_seconds = notebook.answer(_deadline(20))["step_seconds"]
    return {"step_nanoseconds": scale.step_seconds * 1e9}


def shares(pool: SharedPool, scale: Scale, seconds: float = 13.0) -> dict[str, Any]:
    """Users with several notebooks and kernels of different length: each one's part of the GPU time used."""
    users = [user for user in KERNELS if any(notebook.user == user for notebook in pool.notebooks)]
    orders = [(n, scale.hog(KERNELS[n.user])) for n in pool.notebooks if n.user in users]
    before = pool.arbiter_seconds() if pool.policy != "driver" else 0.0
    answers, samples = pool.run(orders, scale.seconds(seconds), GRACE_SECONDS)
    busy = pool.arbiter_seconds() - before if pool.policy != "driver" else 0.0
    done = work_by_user(orders, answers)
    return {
        **_parts(samples, dict.fromkeys(users, 1 / len(users)), *_window(scale.seconds(seconds))),
        "work_part": {user: done[user] / sum(done.values()) for user in users},
        "work_rate": sum(done.values()) / scale.seconds(seconds),
        "arbiter_load": busy / scale.seconds(seconds),
    }


def weights(pool: SharedPool, scale: Scale, seconds: float = 11.0) -> dict[str, Any]:
    """Three users weighted 1:2:4, one notebook each."""
    users = [user for user in ("one", "two", "three") if any(n.user == user for n in pool.notebooks)]
    weight = {user: 2.0**place for place, user in enumerate(users)}
    pool.set_terms({user: {"user_weight": weight[user]} for user in users})
    orders = [(pool.of(user), scale.hog(0.2e-3)) for user in users]
    try:
        _, samples = pool.run(orders, scale.seconds(seconds), GRACE_SECONDS)
    finally:
        pool.set_terms({user: {"user_weight": 1.0} for user in users})
    fair = {user: weight[user] / sum(weight.values()) for user in users}
    return _parts(samples, fair, *_window(scale.seconds(seconds)))


def pool_shares(pool: SharedPool, scale: Scale, seconds: float) -> dict[str, Any]:
    """Two users on two devices: each one's part of the GPU time of both, once the ledger has seen them.

    And the work that is done in a second, beside that of each device when one notebook has it alone.
    """
    users = list(dict.fromkeys(notebook.user for notebook in pool.notebooks))
    alone = 0.0
    for notebook in pool.one_of_each():
        order = [(notebook, scale.hog(0.2e-3))]
        answers, _ = pool.run(order, scale.seconds(2.0), GRACE_SECONDS)
        alone += work(order, answers)
    orders = [(notebook, scale.hog(0.2e-3)) for notebook in pool.notebooks]
    answers, samples = pool.run(orders, scale.seconds(seconds), GRACE_SECONDS)
    window, _ = _window(scale.seconds(seconds))
    # Each can use a whole device wherever they are: half of the two is fair.
    found = _parts(samples, dict.fromkeys(users, 1 / len(users)), window, scale.seconds(seconds) / 3)
    rates = {"work_rate": work(orders, answers), "alone_rate": alone}
    return {**found, "placed": pool.placed(), "devices": pool.devices, **rates}


def _window(seconds: float) -> tuple[float, float]:
    """Return the length of the windows of a phase, and when the first of them begins."""
    return min(WINDOW_SECONDS, seconds / 2), min(SETTLED_SECONDS, seconds / 4)


def throughput(pool: SharedPool, scale: Scale, kernels: tuple[float, ...]) -> dict[str, Any]:
    """Work done in a second by one notebook alone, and by three users together; kernels of each length."""
    users = list(dict.fromkeys(n.user for n in pool.notebooks if n.user != PERSON))[:3]
    found = {}
    for kernel in kernels:
        alone = [(pool.of(users[0]), scale.hog(kernel))]
        rates = []
        for _ in range(2):
            answers, _ = pool.run(alone, scale.seconds(2.0), GRACE_SECONDS)
            rates.append(work(alone, answers))
        together = [(pool.of(user), scale.hog(kernel)) for user in users]
        answers, _ = pool.run(together, scale.seconds(3.5), GRACE_SECONDS)
        found[_name(kernel)] = {"alone": max(rates), "together": work(together, answers)}
    return found


def alone(
    ours: SharedPool, drivers: SharedPool, scale: Scale, kernels: tuple[float, ...], rounds: int = 2
) -> dict[str, Any]:
    """Work done in a second by one notebook alone, under either policy; kernels of each length.

    In turns, and the median of all: two processes on the same machine differ by more than a gate costs.
    """
    found = {}
    for kernel in kernels:
        rates: dict[str, list[float]] = {ours.policy: [], drivers.policy: []}
        for pool in (ours, drivers) * rounds:
            for notebook in pool.notebooks:
                order = [(notebook, scale.hog(kernel))]
                answers, _ = pool.run(order, scale.seconds(1.0), GRACE_SECONDS)
                rates[pool.policy].append(work(order, answers))
        found[_name(kernel)] = {policy: median(each) for policy, each in rates.items()}
    return found


def interactive(pool: SharedPool, scale: Scale, kernels: tuple[float, ...], seconds: float = 6.0) -> dict[str, Any]:
    """A small op every 20 ms beside three hogs, for each length of the hogs' kernels."""
    users = list(dict.fromkeys(n.user for n in pool.notebooks if n.user != PERSON))[:3]
    person: tuple[Notebook, dict[str, Any]] = (pool.of(PERSON), {"do": "ticks", "period": 0.02})
    answers, _ = pool.run([person], scale.seconds(1.5), GRACE_SECONDS)
    found: dict[str, Any] = {"alone": _latencies(answers[0]["taken"])}
    for kernel in kernels:
        hogs = [(pool.of(user), scale.hog(kernel)) for user in users]
        answers, _ = pool.run([*hogs, person], scale.seconds(seconds), GRACE_SECONDS)
        found[_name(kernel)] = {**_latencies(answers[-1]["taken"]), "hogs_work": work(hogs, answers[:-1])}
    return found


def returning(pool: SharedPool, scale: Scale) -> dict[str, Any]:
    """A user who comes back to three hogs after a pause: how long until their first kernel is done."""
    users = list(dict.fromkeys(n.user for n in pool.notebooks if n.user != PERSON))[:3]
    waits = []
    for _ in range(3):
        hogs: list[tuple[Notebook, dict[str, Any]]] = [(pool.of(user), scale.hog(0.2e-3)) for user in users]
        late = (pool.of(PERSON), scale.hog(0.2e-3))
        seconds = scale.seconds(2.0)
        start = pool.begin(hogs, seconds)
        pool.begin([late], seconds / 2, start + seconds / 2)
        answers = [notebook.answer(_deadline(seconds + GRACE_SECONDS)) for notebook, _ in [*hogs, late]]
        waits.append(answers[-1]["first_seconds"] * 1e3)
    return {"first_result_ms": waits}


def gemini(pool: SharedPool, scale: Scale, seconds: float = 13.0) -> dict[str, Any]:
    """Requests are kept and limits not passed, over the policy's own window."""
    terms = {"one": {"request": 0.5, "limit": 0.6}, "two": {"request": 0.2, "limit": 0.3}}
    pool.set_terms(terms)
    orders = [(pool.of(user), scale.hog(0.2e-3)) for user in terms]
    _, samples = pool.run(orders, scale.seconds(seconds), GRACE_SECONDS)
    window = min(Gemini.window_seconds, scale.seconds(seconds) - 0.6)  # over a shorter one nothing is promised
    return {"terms": terms, "window_s": window, "part": _part_of_time(samples, window)}


def production(pool: SharedPool, scale: Scale, alone_seconds: float, seconds: float) -> dict[str, Any]:
    """Production that is busy half of the time keeps its rate; opportunistic work gets some of what it leaves."""
    pool.set_terms({"one": {"kind": "production"}, "two": {"kind": "best-effort"}})
    half = (pool.of("one"), scale.hog(2e-3, rest=2e-3))
    answers, _ = pool.run([half], scale.seconds(alone_seconds), GRACE_SECONDS)
    alone = answers[0]["kernels"] / answers[0]["seconds"]
    answers, samples = pool.run([half, (pool.of("two"), scale.hog(0.2e-3))], scale.seconds(seconds), GRACE_SECONDS)
    marks = answers[0]["marks"]
    late = [mark for mark in marks if mark[0] >= marks[-1][0] - scale.seconds(seconds) / 2]
    beside = (late[-1][1] - late[0][1]) / (late[-1][0] - late[0][0]) if len(late) > 1 else 0.0
    part = _part_of_time(samples, scale.seconds(seconds) / 2)
    return {"production_alone": alone, "production_beside": beside, "part": part}


def pausing(pool: SharedPool, scale: Scale, seconds: float = 4.0) -> dict[str, Any]:
    """Two sessions that pause half of the time: the rate of one, and of both together."""
    pool.set_terms({user: {"request": 0.5, "limit": 1.0} for user in ("one", "two")})
    orders = [(pool.of(user), scale.hog(2e-3, rest=2e-3)) for user in ("one", "two")]
    rates = []
    for chosen in (orders[:1], orders):
        answers, _ = pool.run(chosen, scale.seconds(seconds), GRACE_SECONDS)
        rates.append(sum(answer["kernels"] / answer["seconds"] for answer in answers))
    return {"pausing_alone": rates[0], "pausing_together": rates[1]}


def reef(pool: SharedPool, scale: Scale, seconds: float = 4.5) -> dict[str, Any]:
    """A small op of priority every 20 ms beside a best-effort hog, whose queued work is withdrawn each time."""
    pool.set_terms({"one": {"kind": "best-effort"}})
    person: tuple[Notebook, dict[str, Any]] = (pool.of(PERSON), {"do": "ticks", "period": 0.02})
    answers, _ = pool.run([person], scale.seconds(1.0), GRACE_SECONDS)
    alone, kernel = _latencies(answers[0]["taken"]), 2e-3
    hog = (pool.of("one"), scale.hog(kernel))
    answers, samples = pool.run([hog, person], scale.seconds(seconds), GRACE_SECONDS)
    beside = _latencies(answers[1]["taken"])
    part = _part_of_time(samples, scale.seconds(seconds) / 2)
    return {"kernel_ms": 1e3 * scale.kernel(kernel), "alone": alone, "beside": beside, "part": part}


def paella(pool: SharedPool, scale: Scale, seconds: float = 4.5) -> dict[str, Any]:
    """Short cells beside a long one: they are done soon, and the long one is not passed over for ever."""
    short: tuple[Notebook, dict[str, Any]] = (pool.of(PERSON), {"do": "ticks", "period": 0.02})
    orders = [(pool.of("one"), scale.hog(0.2e-3)), (pool.of("two"), scale.hog(2e-3, rest=2e-3)), short]
    answers, samples = pool.run(orders, scale.seconds(seconds), GRACE_SECONDS)
    return {**_latencies(answers[2]["taken"]), "part": _part_of_time(samples, scale.seconds(seconds) / 2)}


def gaiagpu(pool: SharedPool, scale: Scale, seconds: float = 13.0) -> dict[str, Any]:
    """A hard target is met; an elastic session grows into what nobody uses."""
    terms = {"one": {"request": 0.3, "limit": 0.3}, "two": {"request": 0.2, "limit": 0.9}}
    pool.set_terms(terms)
    orders = [(pool.of(user), scale.hog(0.2e-3)) for user in terms]
    _, samples = pool.run(orders, scale.seconds(seconds), GRACE_SECONDS)
    return {"terms": terms, "part": _part_of_time(samples, scale.seconds(seconds) / 2)}


# --- figures --------------------------------------------------------------------------------------------------------


def work_by_user(orders: list[tuple[Notebook, dict[str, Any]]], answers: list[dict[str, Any]]) -> dict[str, float]:
    """Return the work done, seconds of kernels as they were calibrated, by user."""
    done: dict[str, float] = {}
    for (notebook, order), answer in zip(orders, answers, strict=True):
        done[notebook.user] = done.get(notebook.user, 0.0) + answer["kernels"] * order["kernel_seconds"]
    return done


def work(orders: list[tuple[Notebook, dict[str, Any]]], answers: list[dict[str, Any]]) -> float:
    """Return the work done in a second of the time that it took."""
    return sum(
        answer["kernels"] * order["kernel_seconds"] / answer["seconds"]
        for (_, order), answer in zip(orders, answers, strict=True)
    )


def _parts(
    samples: list[tuple[float, dict[str, float]]], fair: dict[str, float], window: float, settled: float
) -> dict[str, Any]:
    """Return each user's part from ``settled`` on, and the largest error in any window of that length in it.

    All users have work in all of it: each notebook launches until the phase's end.
    """
    early = samples
    samples = [sample for sample in samples if sample[0] >= settled]
    gained = {user: samples[-1][1][user] - samples[0][1][user] for user in fair}
    total = sum(gained.values()) or 1.0
    return {
        "fair": fair,
        "part": {user: gained[user] / total for user in fair},
        "worst_window_error": _worst(samples, fair, window),
        "worst_window_error_from_the_start": _worst(early, fair, window),
        "window_s": window,
        "settled_s": settled,
        "used_of_time": total / (samples[-1][0] - samples[0][0]),
        "users": {user: NOTEBOOKS.get(user, 1) for user in fair},
    }


def _worst(samples: list[tuple[float, dict[str, float]]], fair: dict[str, float], window: float) -> dict[str, float]:
    worst = dict.fromkeys(fair, 0.0)
    for at, used in samples:
        later = next((other for when, other in samples if when >= at + window), None)
        if later is not None:
            gained = {user: later[user] - used[user] for user in fair}
            total = sum(gained.values()) or 1.0
            for user in fair:
                worst[user] = max(worst[user], abs(gained[user] / total - fair[user]))
    return worst


def _part_of_time(samples: list[tuple[float, dict[str, float]]], window: float) -> dict[str, float]:
    """Return each user's GPU time in the last ``window`` seconds, per second."""
    end, last = samples[-1]
    begin, first = next((at, used) for at, used in samples if at >= end - window)
    return {user: (last[user] - first[user]) / (end - begin) for user in last}


def _latencies(taken: list[float]) -> dict[str, float]:
    """Return how long the ops of one who ticks took, ms, without the first ones."""
    ordered = sorted(taken[_FIRST_TICKS:])
    return {
        "p50_ms": 1e3 * ordered[len(ordered) // 2],
        "p95_ms": 1e3 * ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))],
        "p99_ms": 1e3 * ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))],
        "most_ms": 1e3 * ordered[-1],
        "count": len(ordered),
    }


def _name(kernel: float) -> str:
    return f"{kernel * 1e6:g} µs" if kernel < 1e-3 else f"{kernel * 1e3:g} ms"


def _deadline(seconds: float) -> float:
    return monotonic() + seconds
