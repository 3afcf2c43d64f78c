"""Small contents read by a kernel, which writes them where this process looks for them: see `Launcher.reader`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import cupy

from gpu_backend.devices.launching import Launcher

_NAME = "read_contents"
#: What each thread wrote is to be seen before the number is, which the first writes behind all of them.
_SOURCE = r"""
extern "C" __global__ void read_contents(
        const unsigned char* from, unsigned char* into, unsigned long long bytes,
        volatile unsigned long long* mark, unsigned long long number) {
    if ((((unsigned long long)from | bytes) & 7) == 0) {
        const unsigned long long* words = (const unsigned long long*)from;
        for (unsigned at = threadIdx.x; at < bytes / 8; at += blockDim.x)
            ((unsigned long long*)into)[at] = words[at];
    } else {
        for (unsigned at = threadIdx.x; at < bytes; at += blockDim.x)
            into[at] = from[at];
    }
    __threadfence_system();
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence_system();
        *mark = number;
    }
}
"""


@functools.cache
def reading_kernel() -> Any:
    """Return the kernel; the first time it may have to be compiled."""
    return cupy.RawModule(code=_SOURCE).get_function(_NAME).kernel


def make_reader(launcher: Launcher, into: int, mark: int) -> Callable[[int, int], bytes | None]:
    """Return what reads into memory of this host by the kernel, as `Launcher.reader`."""
    return launcher.reader(reading_kernel().ptr, into, mark)
