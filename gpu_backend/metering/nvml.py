"""NVIDIA's management library, by which the driver says which processes a GPU works for."""

from __future__ import annotations

import ctypes
import logging
import os
import threading
from time import monotonic, monotonic_ns, time
from typing import Any

__all__ = ["Nvml", "NvmlMeter"]

log = logging.getLogger("metering.nvml")

_NOT_FOUND, _INSUFFICIENT_SIZE = 6, 7
_MOST_ROWS = 256
#: How often the driver is asked while somebody is watched, seconds: it samples five times a second (H100, measured),
#: and a question takes it 2 ms.
_ASK_SECONDS = 0.1
#: Nobody having asked for so long, seconds, nobody is watched.
_WATCHED_SECONDS = 3.0
#: A sample is of so long, and a gap between two that is longer than the next, seconds, was a gap in asking: of what was
#: between nothing is known.
_SAMPLE, _LONGEST_SAMPLE = 0.2, 1.0
#: A sample that is older than this, seconds, or from the future, has another clock than this host's.
_OLDEST = 60.0


class _Sample(ctypes.Structure):
    _fields_ = (
        ("pid", ctypes.c_uint), ("stamp", ctypes.c_ulonglong), ("sm", ctypes.c_uint), ("memory", ctypes.c_uint),
        ("encoder", ctypes.c_uint), ("decoder", ctypes.c_uint),
    )  # fmt: skip


class _Process(ctypes.Structure):
    _fields_ = (
        ("pid", ctypes.c_uint), ("bytes", ctypes.c_ulonglong), ("instance", ctypes.c_uint), ("compute", ctypes.c_uint)
    )  # fmt: skip


class Nvml:
    """One GPU, as the library knows it."""

    def __init__(self, library: Any, device: Any) -> None:
        self._library, self._device = library, device
        self._samples = (_Sample * _MOST_ROWS)()
        self._processes = (_Process * _MOST_ROWS)()

    @classmethod
    def of(cls, uuid: str) -> Nvml | str:
        """Return the GPU with this UUID, with dashes or without; or why there is none."""
        if uuid.startswith("MIG-"):
            return "NVML does not say who uses an instance of a GPU (MIG)"
        try:
            library = ctypes.CDLL("libnvidia-ml.so.1")
        except OSError:
            return "there is no NVML (libnvidia-ml.so.1)"
        device = ctypes.c_void_p()
        try:
            if status := library.nvmlInit_v2():
                return f"NVML does not start (status {status})"
            if status := library.nvmlDeviceGetHandleByUUID(_dashed(uuid).encode(), ctypes.byref(device)):
                return f"NVML does not know {uuid} (status {status})"
            found = cls(library, device)
            status, _ = found.samples(0)
        except AttributeError as error:
            return f"this NVML is too old: {error}"
        if status not in (0, _NOT_FOUND):
            return f"NVML does not say who uses the GPU (status {status})"
        return found

    def samples(self, since: int) -> tuple[int, list[tuple[int, int, int]]]:
        """Return the status, and of each sample after ``since`` process, time and per cent of the GPU's time."""
        count = ctypes.c_uint(_MOST_ROWS)
        status = self._library.nvmlDeviceGetProcessUtilization(
            self._device, self._samples, ctypes.byref(count), ctypes.c_ulonglong(since)
        )
        if status:
            return status, []
        return 0, [(each.pid, each.stamp, min(100, each.sm)) for each in self._samples[: count.value]]

    def processes(self) -> set[int] | None:
        """Return who has a context on the GPU; None if that cannot be told."""
        count = ctypes.c_uint(_MOST_ROWS)
        status = self._library.nvmlDeviceGetComputeRunningProcesses_v3(
            self._device, ctypes.byref(count), self._processes
        )
        return None if status else {each.pid for each in self._processes[: count.value]}


class NvmlMeter:
    """Sees for whom a GPU works, by the driver's samples. A thread asks: an answer takes longer than a decision may.

    A sample says of each period, of a fifth of a second, for whom the GPU worked at its end, and how busy it was in all
    of it. So it is right on average where one process works at a time, and rough where several do; for who has launched
    nothing there is no sample.
    """

    #: The period, what asking adds where the driver is not held up, and that a sample counts for all of its period.
    lag, part, is_rough, most_burnt = 0.45, 1.0, True, 0.25

    def __init__(self, nvml: Nvml) -> None:
        self.problem = ""
        self._nvml = nvml
        self._seen: dict[int, float] = {}
        self._since = 0
        self._as_of_ns = monotonic_ns()
        self._asked = -_WATCHED_SECONDS
        self._is_closed = False
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._run, name="nvml", daemon=True)
        self._thread.start()

    def seen(self, pid: int) -> float | None:
        """Return for how long the GPU was seen to work for the process; None once that cannot be told."""
        self._asked = monotonic()
        self._wake.set()
        return None if self.problem else self._seen.get(pid, 0.0)

    def as_of(self, now_ns: int) -> int:
        """Return when the newest sample was taken: the driver answers late while it makes a context, or pins memory."""
        return min(now_ns, self._as_of_ns)

    def close(self) -> None:
        """Ask no more."""
        self._is_closed = True
        self._wake.set()
        self._thread.join(2.0)

    def _run(self) -> None:
        pause = threading.Event()  # never set: it sleeps
        while not (self._is_closed or self.problem):
            if monotonic() - self._asked > _WATCHED_SECONDS:
                self._wake.clear()
                self._wake.wait()
                continue
            self._take_in(*self._nvml.samples(self._since))
            pause.wait(_ASK_SECONDS)

    def _take_in(self, status: int, samples: list[tuple[int, int, int]]) -> None:
        if status == _NOT_FOUND or (not status and not samples):
            return
        if status:
            self.problem = f"NVML does not answer any more (status {status})"
            log.warning("what executors say that they use is no longer seen from outside: %s", self.problem)
            return
        latest = max(stamp for _, stamp, _ in samples)
        seconds = (latest - self._since) / 1e6
        lasted = seconds if seconds <= _LONGEST_SAMPLE else _SAMPLE
        if self._since and seconds > 0:
            for pid, _, busy in samples:
                leader = _leader(pid)
                self._seen[leader] = self._seen.get(leader, 0.0) + lasted * busy / 100
        self._since = max(self._since, latest)
        age = time() - latest / 1e6
        self._as_of_ns = monotonic_ns() - (int(age * 1e9) if 0 <= age < _OLDEST else 0)


def _leader(pid: int) -> int:
    """Return whose a process is: an executor leads a session of its own, which nothing can leave that it starts."""
    try:
        return os.getsid(pid)
    except OSError:
        return pid


def _dashed(uuid: str) -> str:
    """Return a GPU's UUID as NVML writes it."""
    digits = uuid.removeprefix("GPU-").replace("-", "")
    return "GPU-" + "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
