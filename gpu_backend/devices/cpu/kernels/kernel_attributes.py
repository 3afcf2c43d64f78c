"""The attributes of a compiled raw kernel, by CUDA's names, with what is true of them on a processor."""

from __future__ import annotations

import operator
import platform
import re

from gpu_backend.devices.cpu.kernels import launch as limits
from gpu_backend.devices.cpu.kernels.errors import CUDADriverError
from gpu_backend.devices.cpu.kernels.source import blanked

_NAMES = (
    "max_threads_per_block",
    "shared_size_bytes",
    "const_size_bytes",
    "local_size_bytes",
    "num_regs",
    "ptx_version",
    "binary_version",
    "cache_mode_ca",
    "max_dynamic_shared_size_bytes",
    "preferred_shared_memory_carveout",
)


class KernelAttributes:
    """Attributes of a kernel; -1 is CUDA's own sign for "does not exist here".

    Parameters
    ----------
    code
        The kernel's source.
    """

    def __init__(self, code: str) -> None:
        self.code = code
        self._settable = {"max_dynamic_shared_size_bytes": limits.DEFAULT_SHARED_BYTES}

    @property
    def attributes(self) -> dict[str, int]:
        """All attributes of the compiled kernel, by name."""
        return {name: getattr(self, name) for name in _NAMES}

    @property
    def max_threads_per_block(self) -> int:
        """Most threads of a block."""
        return limits.MAX_BLOCK_THREADS

    @property
    def shared_size_bytes(self) -> int:
        """0 for a source without ``__shared__`` arrays of constant size, else -1: their sizes are not kept."""
        fixed = re.search(r"(?<!extern )\b__shared__\b", blanked(self.code))
        return -1 if fixed else 0

    @property
    def const_size_bytes(self) -> int:
        """0: a processor keeps ``__constant__`` variables in ordinary memory."""
        return 0

    @property
    def local_size_bytes(self) -> int:
        """0: local variables that do not fit into registers lie on the thread's stack."""
        return 0

    @property
    def num_regs(self) -> int:
        """General registers of this machine's processor; a thread may use all of them."""
        return 31 if platform.machine() in ("aarch64", "arm64") else 16

    @property
    def ptx_version(self) -> int:
        """-1, "not existing": there is no PTX here."""
        return -1

    @property
    def binary_version(self) -> int:
        """-1, "not existing": the code is not of any GPU generation."""
        return -1

    @property
    def cache_mode_ca(self) -> int:
        """0: there is no such cache mode."""
        return 0

    @property
    def max_dynamic_shared_size_bytes(self) -> int:
        """Most dynamic shared memory of a block, in bytes. Can be set, up to 227 KiB as on Hopper."""
        return self._settable["max_dynamic_shared_size_bytes"]

    @max_dynamic_shared_size_bytes.setter
    def max_dynamic_shared_size_bytes(self, size: int) -> None:
        if not 0 <= size <= limits.MAX_SHARED_BYTES:
            raise CUDADriverError(
                "CUDA_ERROR_INVALID_VALUE", f"invalid argument: at most {limits.MAX_SHARED_BYTES} bytes"
            )
        self._settable["max_dynamic_shared_size_bytes"] = operator.index(size)

    @property
    def preferred_shared_memory_carveout(self) -> int:
        """A hint without effect here; keeps what it is set to, -1 (no preference) at first."""
        return self._settable.get("preferred_shared_memory_carveout", -1)

    @preferred_shared_memory_carveout.setter
    def preferred_shared_memory_carveout(self, fraction: int) -> None:
        self._settable["preferred_shared_memory_carveout"] = operator.index(fraction)
