"""How long the catalogue keeps a reader waiting, against what it allows itself.

Each figure is the best of several fresh interpreters (other work on the machine only ever adds time), which find the
modules compiled, as an installation has them: the import,
then every sub-command as the first one after the import, shown as text and as HTML. For comparison: what importing
pydantic alone costs, which the catalogue avoids, and reading the entries without what was kept of them.

    python benchmarks/catalogue.py [--runs 5] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from run_record import circumstances

IMPORT_LIMIT_MS = 150
COMMAND_LIMIT_MS = 100
LINES = {
    "list": "list",
    "list, filtered": "list sharing=temporal year=2020-2023 --sort year",
    "show": "show tgs",
    "search": "search unified memory",
    "compare five": "compare tgs antman reef gemini orion",
    "timeline": "timeline",
    "graph": "graph",
    "cite": "cite tgs",
    "choose": "choose trusted=no kubernetes=no closed=yes goal=latency oversubscription=no",
    "plot": "plot overhead",
    "who": "who",
    "verdicts": "verdicts",
    "try": "try rcuda",
}

_TIMED = """
import sys, time
start, used = time.perf_counter(), time.process_time()
{code}
print((time.perf_counter() - start) * 1e3, (time.process_time() - used) * 1e3)
"""

_COMMAND = """
import catalog, shlex
start, used = time.perf_counter(), time.process_time()
from catalog.commands import parse, perform
bundle = perform(parse(shlex.split({line!r}), "%catalog"))._repr_mimebundle_()
"""

_UNKEPT = """
import catalog
from catalog import loader
loader._places = lambda: iter(())
start, used = time.perf_counter(), time.process_time()
catalog.systems()
"""


def programs() -> list[tuple[str, str, int | None]]:
    """Return what is timed: a name, the code, and its limit in milliseconds if it has one."""
    first = [
        (f"%catalog {what}, first after the import", _COMMAND.format(line=line), COMMAND_LIMIT_MS)
        for what, line in LINES.items()
    ]
    again = _COMMAND.format(line="list") + _COMMAND.format(line=LINES["compare five"])
    return [
        ("import catalog", "import catalog", IMPORT_LIMIT_MS),
        *first,
        ("%catalog compare five, second command", again, COMMAND_LIMIT_MS),
        ("import pydantic (not done)", "from pydantic import BaseModel", None),
        ("entries parsed from TOML (once after a change)", _UNKEPT, None),
    ]


def once_ms(code: str) -> tuple[float, float]:
    """Return how many milliseconds ``code`` takes in a fresh interpreter: by the clock, and of processor time."""
    root = Path(__file__).resolve().parent.parent
    command = [sys.executable, "-c", _TIMED.format(code=code)]
    said = subprocess.run(command, capture_output=True, text=True, check=True, cwd=root, env=_environment()).stdout
    clock, processor = map(float, said.split())
    return clock, processor


def _environment() -> dict[str, str]:
    """Return this process's, in which Python keeps what it compiled: else each run would compile the catalogue anew."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def measure(runs: int) -> list[dict[str, Any]]:
    """Return one record per figure: what, milliseconds, limit.

    The runs go round all figures in turn, so that a busy moment of the machine does not fall on one of them alone.
    """
    timed = programs()
    for _, code, _ in timed:  # compiles what is not
        once_ms(code)
    found: dict[str, list[tuple[float, float]]] = {what: [] for what, _, _ in timed}
    for _ in range(runs):
        for what, code, _ in timed:
            found[what].append(once_ms(code))
    return [
        {
            "what": what,
            "ms": min(clock for clock, _ in found[what]),
            "processor_ms": min(processor for _, processor in found[what]),
            "limit_ms": limit,
        }
        for what, _, limit in timed
    ]


def main() -> int:
    """Print the figures; 1 if one is over its limit."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--runs", type=int, default=5, help="fresh interpreters per figure")
    parser.add_argument("--json", type=Path, help="write the figures and their circumstances there")
    arguments = parser.parse_args()
    rows = measure(arguments.runs)
    for row in rows:
        limit = row["limit_ms"]
        share = f"{row['ms'] / limit:5.0%} of {limit} ms" if limit else ""
        print(f"{row['what']:48} {row['ms']:7.1f} ms ({row['processor_ms']:6.1f} of processor)   {share}")
    if arguments.json:
        arguments.json.write_text(json.dumps({"circumstances": circumstances(), "figures": rows}, indent=2) + "\n")
    return int(any(row["limit_ms"] and row["ms"] > row["limit_ms"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
