"""Says of which class native CuPy's results are where an argument is of a program's own: JSON, one line a call.

It runs where native CuPy is: ``python -m tests.cupy_oracle --run -m tests.cupy_oracle.classes SEED COUNT NAMES``.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpu_backend.devices import open_device
from tests.conformance.infer_calls import Array
from tests.conformance.subclass_calls import Library, asked, host_memory, told

#: CuPy draws random numbers until enough of them fit, which may be never. Counted is what this process computes: others
#: may have the processors for longer.
_SECONDS = 5


def main(words: Sequence[str]) -> int:
    """Print each call, what came of it, and whether that depends on values, which are not native's."""
    import cupy

    def array(spec: Array) -> Any:
        host, layout, offset = host_memory(spec)
        memory = cupy.asarray(host).data + offset
        return cupy.ndarray(layout.shape, layout.dtype, memptr=memory, strides=layout.strides)

    built = Path(os.environ["CUPY_ORACLE"])
    reads = ctypes.CDLL(str(built.with_name(json.loads(built.read_bytes())["library"]))).oracle_reads
    library = Library(open_device("cuda").resolve, cupy.ndarray, array)
    signal.signal(signal.SIGPROF, _interrupt)
    for one in asked(list(words[2:]), int(words[0]), int(words[1])):
        reads()
        signal.setitimer(signal.ITIMER_PROF, _SECONDS)
        found = told(library, one)
        signal.setitimer(signal.ITIMER_PROF, 0)
        sys.stdout.write(json.dumps([repr(one), found, bool(reads())]) + "\n")
    return 0


def _interrupt(*given: Any) -> None:
    raise TimeoutError(f"It computed for longer than {_SECONDS} s.")


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
