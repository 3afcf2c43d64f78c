"""The figures that this project's benchmarks record of systems: by which names verdicts know them, and what they count.

``benchmarks/systems.py`` and ``benchmarks/sharing.py`` record them. An entry's verdict may name any of its system.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["FIGURES", "Figure", "names"]


class Figure(NamedTuple):
    """What is counted, and in which unit of the taxonomy."""

    quantity: str
    unit: str


_HALF = "rate of a session that is alone and entitled to the whole device, lost to the policy"

#: By system and name.
FIGURES: dict[tuple[str, str], Figure] = {
    ("rcuda", "overhead"): Figure("time added to uploads, 200 matrix products and a download, on one host", "%"),
    ("rcuda", "overhead-far"): Figure("time added to the same over TLS with 1 ms of round trip", "%"),
    ("rcuda", "bandwidth-kept"): Figure("upload bandwidth on one host, against a program beside the GPU", "%"),
    ("lupine", "resident-overhead"): Figure(
        "time added to 200 matrix products of what lies on the GPU, with 1 ms of round trip", "%"
    ),
    ("lupine", "value-round-trips"): Figure("time added to a fetched value by distance, in round trips", "x"),
    ("lupine", "chain-overhead"): Figure(
        "time added to 1,000 small operations that depend on each other, with 1 ms of round trip", "%"
    ),
    ("dgsf", "batching"): Figure("time that operations sent in batches take less than awaited ones, 1 ms away", "%"),
    ("dgsf", "start"): Figure("time from asking for a session to its first value, an executor being ready", "s"),
    ("dgsf", "start-saved"): Figure("time that the executor kept ready saves at such a start", "s"),
    ("dgsf", "hand-over"): Figure("time from the end of one session to the first value of who waited for its GPU", "s"),
    ("dxpu", "overhead"): Figure("time added to uploads, 200 matrix products and a download, on one host", "%"),
    ("dxpu", "attach"): Figure("time from asking for a place on a GPU to the first value from it", "s"),
    ("dxpu", "detach"): Figure("time from giving it back until the pool counts it as free", "s"),
    ("osr2023-serverless-gpu", "start-saved"): Figure("time that the executor kept ready saves at a start", "s"),
    ("fractos", "chain-gain"): Figure("speed of a chain of operations sent as one, against one by one, 1 ms away", "%"),
    ("bitfusion", "memory-taken"): Figure("memory that a session could take, of what it asked for", "%"),
    ("orionx", "memory-taken"): Figure("memory that a session could take, of what it asked for", "%"),
    ("orionx", "shared-memory-gain"): Figure("upload bandwidth through shared memory, against the network's way", "x"),
    ("kubeshare", "request"): Figure("share of the device of a session that requests 50 % beside another", "%"),
    ("kubeshare", "limit"): Figure("share of the device of a session that is limited to 30 %", "%"),
    ("kubeshare", "throughput"): Figure("work of two sessions that pause half of the time, against one of them", "x"),
    ("kubeshare", "overhead"): Figure(_HALF, "%"),
    ("gemini", "request"): Figure("share of the device of a session that requests 50 % beside another", "%"),
    ("gemini", "limit"): Figure("share of the device of a session that is limited to 30 %", "%"),
    ("gemini", "overhead"): Figure(_HALF, "%"),
    ("gaiagpu", "target"): Figure("share of the device of a session with a hard target of 30 %", "%"),
    ("gaiagpu", "growth"): Figure("share of the device of an elastic session that requests 20 %", "%"),
    ("gaiagpu", "overhead"): Figure(_HALF, "%"),
    ("csur2017-survey", "fairness"): Figure(
        "greatest distance of a user's share of the device from an equal one in any window of 5 s, in points", "%"
    ),
    ("tgs", "production-kept"): Figure("rate that production keeps beside an opportunistic session", "%"),
    ("tgs", "harvest"): Figure("share of the device that the opportunistic session uses", "%"),
    ("tgs", "harvest-to-antman"): Figure(
        "what the opportunistic session uses, against the policy antman in the same run", "x"
    ),
    ("antman", "production-kept"): Figure("rate that the guaranteed session keeps beside an opportunistic one", "%"),
    ("antman", "harvest"): Figure("share of the device that the opportunistic session uses", "%"),
    ("reef", "added-latency"): Figure(
        "median latency added to short operations by a best-effort session of 2 ms kernels", "%"
    ),
    ("reef", "throughput-kept"): Figure("share of the device that the best-effort session keeps beside them", "%"),
    ("orion", "production-kept"): Figure("rate that a high-priority session keeps beside a best-effort one", "%"),
    ("orion", "harvest"): Figure("share of the device that the best-effort session uses", "%"),
    ("muxflow", "production-kept"): Figure("rate that an online session keeps beside an offline one", "%"),
    ("muxflow", "harvest"): Figure("share of the device that the offline session uses", "%"),
    ("iadeep", "throughput"): Figure("work of two sessions that pause half of the time, against one of them", "x"),
    ("paella", "short-median"): Figure("median latency of short operations beside a long job", "ms"),
}


def names(system: str) -> tuple[str, ...]:
    """Return the names of the figures that may be recorded of ``system``."""
    return tuple(name for of, name in FIGURES if of == system)
