"""Which devices this node has. CUDA is asked in a process of its own, so that the agent never holds a context."""

from __future__ import annotations

import logging
import platform
import subprocess
import sys
from pathlib import Path

import msgspec

from gpu_backend.metering.machine import machine_bytes
from gpu_backend.wire.errors import PoolRefusal

log = logging.getLogger("node.inventory")

_PROBE_SECONDS = 60.0


class Found(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A device of this node. ``uuid`` stays the same over restarts.

    Of a GPU, ``visible`` names it in CUDA_VISIBLE_DEVICES, and ``nodes`` are the device nodes that are its own; none if
    they could not be told from the others'. Those of one ``island`` reach each other's memory directly; "" for none.
    """

    ordinal: int
    kind: str
    name: str
    uuid: str
    total_bytes: int
    visible: str = ""
    nodes: tuple[str, ...] = ()
    island: str = ""

    @property
    def is_part(self) -> bool:
        """Whether it is an instance of a GPU that is split (MIG)."""
        return self.visible.startswith("MIG-")


class _Probe(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    devices: tuple[Found, ...]
    problem: str


def devices(wanted: str, cpu_devices: int) -> tuple[Found, ...]:
    """Return the devices to offer.

    Parameters
    ----------
    wanted
        "cuda", "cpu", or "auto": the GPUs if CuPy can use them, else the CPU.
    cpu_devices
        How many devices the CPU stands for.

    Raises
    ------
    PoolRefusal
        If "cuda" is wanted and there is no GPU that CuPy can use.
    """
    if wanted in ("auto", "cuda"):
        probe = _probe_cuda()
        if probe.devices:
            return probe.devices
        if wanted == "cuda":
            raise PoolRefusal(f'No GPU can be offered here: {probe.problem}. Set devices = "cpu" to offer the CPU.')
        log.info("offering the CPU: %s", probe.problem)
    name, (_, total) = _cpu_name(), machine_bytes()
    return tuple(Found(n, "cpu", name, f"cpu-{platform.node()}-{n}", total) for n in range(cpu_devices))


def _probe_cuda() -> _Probe:
    command = [sys.executable, "-m", "gpu_backend.node.cuda_probe"]
    try:
        done = subprocess.run(command, capture_output=True, timeout=_PROBE_SECONDS, check=False)
        return msgspec.json.decode(done.stdout, type=_Probe)
    except subprocess.TimeoutExpired:
        return _Probe((), f"the CUDA driver did not answer within {_PROBE_SECONDS:.0f} s")
    except (OSError, msgspec.DecodeError) as error:
        return _Probe((), f"asking the CUDA driver failed ({error})")


def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine() or "CPU")
