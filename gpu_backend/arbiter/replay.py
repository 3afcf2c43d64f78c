"""``python -m gpu_backend.arbiter.replay FILE``: make every decision of an arbiter's log again."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from gpu_backend.arbiter import decisions
from gpu_backend.arbiter.policies import registry

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit status: 0 if every decision came out as it is on record."""
    parser = argparse.ArgumentParser(prog="python -m gpu_backend.arbiter.replay", description=__doc__)
    parser.add_argument("file", type=Path, help="the file 'decisions' in an arbiter's directory")
    parser.add_argument("--print", action="store_true", help="print each decision")
    options = parser.parse_args(arguments)
    try:
        policy, logged = decisions.read(options.file)
        if options.print:
            for decision in logged:
                sys.stdout.write(f"{decision.now:.6f} {decision.event}: {list(decision.instructions)}\n")
        count = decisions.replay(options.file, registry.make)
    except (OSError, ValueError, registry.UnknownPolicy, decisions.NotReproduced) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"{count} decisions of the policy {policy} came out as they are on record.\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
