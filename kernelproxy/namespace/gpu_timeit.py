"""The magic ``%gpu_timeit`` of ``%load_ext cupyx.profiler``: `benchmark` for a line or a cell."""

from __future__ import annotations

import math
import sys
import textwrap

from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, line_cell_magic, magics_class, needs_local_scope
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring

from kernelproxy.namespace.profiler import benchmark


@magics_class
class GPUTimeitMagics(Magics):
    """``%gpu_timeit`` and ``%%gpu_timeit``."""

    @line_cell_magic
    @needs_local_scope
    @magic_arguments()
    @argument("-n", "--n-repeat", type=int, default=10_000, help="Number of repeats (default: 10000)")
    @argument("-w", "--n-warmup", type=int, default=10, help="Number of warmup runs (default: 10)")
    @argument("--max-duration", type=float, default=math.inf, help="Maximum duration in seconds (default: inf)")
    @argument("code", nargs="*", help="Code to benchmark")
    def gpu_timeit(self, line: str, cell: str | None = None, local_ns: dict[str, object] | None = None) -> None:
        """Time code on the notebook's clock and on the device, as ``cupyx.profiler.benchmark`` does.

        Examples
        --------
        ``%gpu_timeit -n 100 cp.random.random((1000, 1000)).sum()``, or ``%%gpu_timeit -n 100`` above a cell.
        """
        args = parse_argstring(self.gpu_timeit, line)
        if cell is None:
            code = compile(" ".join(args.code).strip(), "<gpu_timeit>", "eval")
        else:
            code = compile(textwrap.dedent(cell), "<gpu_timeit>", "exec")

        assert self.shell is not None  # whoever registers magics has one
        names = self.shell.user_ns

        def run() -> None:
            eval(code, names, local_ns)

        times = benchmark(run, n_repeat=args.n_repeat, n_warmup=args.n_warmup, max_duration=args.max_duration)
        sys.stdout.write(f"{times}\n")


def load_ipython_extension(ipython: InteractiveShell) -> None:
    """Register the magic ``%gpu_timeit``; what ``%load_ext cupyx.profiler`` calls."""
    ipython.register_magics(GPUTimeitMagics)
