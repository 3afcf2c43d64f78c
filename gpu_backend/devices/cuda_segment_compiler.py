"""The kernels of segments compiled behind the ops that run meanwhile, and never for long."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Mapping
from time import perf_counter

import cupy
from cupy.cuda import compiler

from gpu_backend.devices import segment_source
from gpu_backend.devices.segment_source import KERNELS, Body

log = logging.getLogger("executor")

#: Most of the time is not spent compiling: after a program, so many times as long as it took is waited for the next.
_REST = 2.0
#: How much others come before who compiles.
_NICE = 10


class Program:
    """Compiled kernels of segments, with a counter of their own for blocks that wait for each other.

    ``kernels`` has each with how many instructions it has room for, the smallest first.
    """

    def __init__(self, bodies: Mapping[int, Body]) -> None:
        self._module = cupy.RawModule(code=segment_source.program(bodies), options=("--std=c++17",))
        self._held = [self._module.get_function(name).kernel for name in KERNELS]
        self.kernels = tuple([(one.ptr, room) for one, room in zip(self._held, KERNELS.values(), strict=True)])
        self.codes = frozenset(bodies)
        #: Launches a table, of so many instructions, of which the largest has so many elements; once it is taken up.
        self.launch: Callable[[bytearray, int, int], None] = _not_yet


def _not_yet(table: bytearray, ops: int, most_elements: int) -> None:
    raise AssertionError("a program is launched that nobody has taken up")


class SegmentCompiler:
    """Compiles one program at a time, in a thread: ops go CuPy's way meanwhile."""

    def __init__(self, device: cupy.cuda.Device) -> None:
        self._device = device
        self._thread: threading.Thread | None = None
        self._rests_until = 0.0
        #: What has been compiled and not been taken; and whether it is the program of the usual ops.
        self.compiled: Program | None = None
        self.is_usual = False
        #: The codes of what does not compile.
        self.failed: set[int] = set()

    def may_begin(self) -> bool:
        """Tell whether nothing is being compiled, or waits to be taken, and it is time for more."""
        if self.compiled is not None or (self._thread is not None and self._thread.is_alive()):
            return False
        return perf_counter() > self._rests_until

    def begin(self, bodies: Mapping[int, Body], is_usual: bool = False) -> None:
        """Compile ``bodies``, by their codes."""
        self.is_usual = is_usual
        self._thread = threading.Thread(target=self._compile, args=(bodies,), name="segments", daemon=True)
        self._thread.start()

    def _compile(self, bodies: Mapping[int, Body]) -> None:
        began = perf_counter()
        os.setpriority(os.PRIO_PROCESS, 0, _NICE)  # on Linux of this thread alone
        self._device.use()
        try:
            self.compiled = Program(bodies)
        except compiler.CompileException as error:
            log.warning("an op does not compile for segments, and stays what it is: %.500s", error)
            self.failed.update(code for code, body in bodies.items() if not _compiles(body))
        except Exception:  # whatever it is: no op needs it
            log.exception("the kernels of segments cannot be compiled")
            self.failed.update(bodies)
        self._rests_until = perf_counter() + _REST * (perf_counter() - began)


def _compiles(body: Body) -> bool:
    try:
        Program({0: body})
    except compiler.CompileException:
        return False
    return True
