"""Holds what inference claims of many calls against native CuPy without a device, and prints where it is wrong.

It runs where native CuPy is: ``python -m tests.cupy_oracle --run -m tests.cupy_oracle.claims --calls 8``.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import signal
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpu_backend.devices import open_device
from tests.conformance.infer_calls import TEMPLATES, calls, launches
from tests.conformance.infer_judge import Judge

#: CuPy draws random numbers until enough of them fit, which may be never.
_SECONDS = 20


class TooLong(Exception):
    """A call waits for a value that does not come."""


def main(words: Sequence[str] | None = None) -> int:
    """Judge; return 1 if a claim is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="functions; all by default")
    parser.add_argument("--calls", type=int, default=8, help="of each function")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(words)
    warnings.simplefilter("ignore")  # such as CuPy's of what is experimental, once for each process
    built = Path(os.environ["CUPY_ORACLE"])
    reads = ctypes.CDLL(str(built.with_name(json.loads(built.read_bytes())["library"]))).oracle_reads
    judge = Judge(open_device("cuda"))
    signal.signal(signal.SIGPROF, _interrupt)
    counts = {"judged": 0, "not told": 0, "wrong": 0}
    asked = [(judge.verdict, one) for one in calls(given.seed, given.calls, given.names or sorted(TEMPLATES))]
    asked += [(judge.verdict_on_launch, one) for one in ([] if given.names else launches(given.seed, 3 * given.calls))]
    for verdict, one in asked:
        reads()
        signal.setitimer(signal.ITIMER_PROF, _SECONDS)
        wrong = verdict(one)
        signal.setitimer(signal.ITIMER_PROF, 0)
        kind = ("not told" if reads() else "wrong") if wrong else "judged"
        counts[kind] += 1
        if kind == "wrong":
            sys.stdout.write(f"{wrong}\n")
            sys.stdout.flush()
    sys.stdout.write(", ".join(f"{count} {kind}" for kind, count in counts.items()) + "\n")
    return 1 if counts["wrong"] else 0


def _interrupt(*given: Any) -> None:
    raise TooLong(f"It computed for longer than {_SECONDS} s.")


if __name__ == "__main__":
    raise SystemExit(main())
