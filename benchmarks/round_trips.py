"""Counts the round trips of the calls that notebooks are made of, and writes docs/reference/round-trips.md.

Run through a pool: ``workbench run -m benchmarks.round_trips [PAGE]``.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import cupy as cp
import cupyx
import cupyx.scipy.fft
import cupyx.scipy.linalg
import cupyx.scipy.ndimage
import cupyx.scipy.signal
import cupyx.scipy.sparse
import cupyx.scipy.special
import numpy as np

import kernelproxy
from gpu_backend.opstream import surface
from gpu_backend.opstream.proof.outcome import Unproved
from kernelproxy.calls import dispatch

CALLS = Path(__file__).with_name("round_trips.txt")
PAGE = Path(__file__).parents[1] / "docs" / "reference" / "round-trips.md"

_INTRODUCTION = """# Round trips

Which calls wait for the executor, and why. A call is **inferred** where the notebook proves its result itself: it is
recorded, returns at once and costs no round trip; if the shape of its result depends on values, one is paid when that
is needed. A read of a small array is **known here** where the notebook uploaded or made its values, or has read them
before. Every other call waits for one answer and is right all the same. So do results that are large beside what is
left of the memory limit: `OutOfMemoryError` belongs to its own line.

`workbench run -m benchmarks.round_trips` writes this page: it makes each call through a pool and counts. `x` and `y`
are vectors of floats, `A` and `B` matrices, `i` integers, `m` booleans, `z` complex, `h` an array of NumPy.
"""


class Counted(NamedTuple):
    """A call, how many answers it waited for, and why."""

    call: str
    round_trips: int
    reason: str
    answered_here: int = 0

    @property
    def verdict(self) -> str:
        """What the table says."""
        if self.round_trips == 0:
            return "known here" if self.answered_here else "inferred"
        return f"{self.round_trips}: {self.reason}" if self.round_trips > 1 else self.reason


def names() -> dict[str, Any]:
    """Return what the calls are made with."""
    rng = np.random.default_rng(0)
    h = rng.random(8)
    square = rng.random((4, 4))
    square = square @ square.T + np.eye(4)
    made = {
        "cp": cp, "cupyx": cupyx, "sp": cupyx.scipy, "h": h, "file": io.BytesIO(),
        "x": cp.asarray(h), "y": cp.asarray(np.sort(rng.random(8))),
        "A": cp.asarray(square), "B": cp.asarray(square + 1),
        "i": cp.arange(8), "m": cp.asarray(h > 0.5), "z": cp.asarray(h + 1j), "T": cp.zeros((2, 3, 4)),
        "rs": cp.random.RandomState(0), "g": cp.random.default_rng(0),
    }  # fmt: skip
    float(made["g"].random(1)[0])  # the generators are there
    return made


class Counter:
    """Makes calls and counts. Notes why the last call was not proved."""

    def __init__(self) -> None:
        self.reason = ""
        self._prove = dispatch.prove
        dispatch.prove = self._noting

    def _noting(self, *args: Any) -> Any:
        proof = self._prove(*args)
        if isinstance(proof, Unproved) and not self.reason:
            self.reason = proof.reason
        return proof

    def count(self, call: str) -> Counted:
        """Return what ``call`` costs; its arguments are made before."""
        scope = names()
        compiled = compile(call, "<call>", "eval")
        session = kernelproxy.current_session()
        session.synchronize()
        self.reason = ""
        before, here = session.counters.round_trips, session.counters.answered_here
        kept = eval(compiled, scope)
        count, here = session.counters.round_trips - before, session.counters.answered_here - here
        session.synchronize()
        del kept
        return Counted(call, count, self._why(call), here)

    def _why(self, call: str) -> str:
        if not self.reason:
            return "asks for a value"
        if self.reason.startswith("no rule for "):
            return _ASKS.get(call.partition("(")[0], "no rule yet")
        return self.reason.partition(": ")[0] if self.reason.startswith("the rule of") else self.reason


#: Why a function can have no rule.
_ASKS = {
    **dict.fromkeys(
        ("cp.trim_zeros", "cp.roots"),
        "the shape of the result depends on values",
    ),
    **dict.fromkeys(("cp.asarray_chkfinite", "cp.unravel_index"), "whether it fails depends on values"),
    **dict.fromkeys(("cp.polyfit", "sp.linalg.lu_factor"), "whether it warns depends on values"),
    "cp.get_default_memory_pool": "asks for a value",
    "sp.ndimage.label": "asks for a value: how many there are",
}


def groups(text: str) -> Iterator[tuple[str, list[str]]]:
    """Return the groups of calls with their titles; the first two comments are for readers of the file."""
    title, calls = "", list[str]()
    for line in text.splitlines():
        if line.startswith("# "):
            if calls:
                yield title, calls
            title, calls = line[2:], []
        elif line:
            calls.append(line)
    yield title, calls


def single_array_functions() -> list[str]:
    """Return the functions of ``cupy`` that always return one array."""
    described = surface.load()
    entries = [(name, described[f"cupy.{name}"]) for name in described.below("cupy")]
    return [
        name
        for name, entry in entries
        if isinstance(entry, surface.Function) and entry.returns == surface.Returns.ARRAY
    ]


def inferred_functions(counted: list[Counted]) -> tuple[list[str], list[str]]:
    """Return the functions with one array as a result that are inferred, and those that are not."""
    from gpu_backend.opstream.proof import registry
    from kernelproxy.namespace.own import OWN

    seen = {one.call.partition("(")[0]: one.round_trips for one in counted}
    known, others = [], []
    for name in single_array_functions():
        trips = seen.get(f"cp.{name}")
        proved = registry.has_rule(f"cupy.{name}") or f"cupy.{name}" in OWN
        (known if (proved if trips is None else trips == 0) else others).append(name)
    return known, others


def page(counted: dict[str, list[Counted]]) -> str:
    """Return the page."""
    everything = [one for group in counted.values() for one in group]
    inferred = sum(one.verdict == "inferred" for one in everything)
    here = sum(one.verdict == "known here" for one in everything)
    known, others = inferred_functions(everything)
    share = 100 * len(known) / (len(known) + len(others))
    parts = [_INTRODUCTION]
    parts.append(f"Of these {len(everything)} calls {inferred} are inferred and {here} known here.")
    parts.append(
        f"Of the {len(known) + len(others)} functions of `cupy` that always return one array {len(known)} are "
        f"inferred, {share:.0f} %. The others: " + ", ".join(f"`{name}`" for name in others) + "."
    )
    for title, group in counted.items():
        rows = "\n".join(f"| `{one.call.replace('|', chr(92) + '|')}` | {one.verdict} |" for one in group)
        parts.append(f"## {title}\n\n| call | |\n|---|---|\n{rows}")
    return "\n".join(parts[:1]) + "\n" + "\n\n".join(parts[1:]) + "\n"


def main() -> None:
    """Count, and write the page."""
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else PAGE
    counter = Counter()
    counted = {title: [counter.count(call) for call in calls] for title, calls in groups(CALLS.read_text())}
    target.write_text(page(counted))


if __name__ == "__main__":
    main()
