"""NVIDIA's driver as two C libraries, loaded by name like the real ones: of two GPUs, one of which may be split."""

from __future__ import annotations

import subprocess
from pathlib import Path

__all__ = ["NVML", "install_driver", "install_nvml"]

#: CUDA's side of it. Where one GPU is chosen by its UUID, that is the first.
DRIVER = r"""
#include <stdlib.h>
#include <string.h>
int cuInit(unsigned f) { return STATUS; }
int cuDeviceGetCount(int *n) {
  const char *chosen = getenv("CUDA_VISIBLE_DEVICES");
  *n = chosen && strstr(chosen, "GPU-") && !strchr(chosen, ',') ? 1 : 2;
  return 0;
}
int cuDeviceGet(int *d, int o) { *d = o; return 0; }
int cuDeviceGetName(char *s, int n, int d) { strncpy(s, d ? "GPU one" : "GPU zero", n); return 0; }
int cuDeviceTotalMem_v2(size_t *b, int d) { *b = (size_t)(d + 1) << 40; return 0; }
int cuDeviceGetPCIBusId(char *s, int n, int d) { strncpy(s, d ? "0000:AF:00.0" : "0000:3B:00.0", n); return 0; }
int cuDeviceCanAccessPeer(int *can, int d, int peer) { *can = d != peer; return 0; }
int cuDeviceGetUuid_v2(unsigned char *u, int d) { memset(u, 16 + d, 16); return 0; }
"""

#: NVML of the same two. Handles are 1 and 2, and from 3 on those of the second's parts.
NVML = r"""
#include <stdint.h>
#include <stdio.h>
#include <string.h>
typedef unsigned u; typedef uintptr_t h;
struct memory { unsigned long long total, free, used; };
int nvmlInit_v2(void) { return 0; }
int nvmlDeviceGetGpuInstanceProfileInfoV(h d, u kind, void *info) { return 3; }
int nvmlDeviceGetCount_v2(u *n) { *n = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(u n, h *d) { *d = n + 1; return 0; }
int nvmlDeviceGetHandleByUUID(const char *s, h *d) { *d = s[4] == '1' && s[5] == '1' ? 2 : 1; return 0; }
int nvmlDeviceGetUUID(h d, char *s, u n) {
  static const char *names[] = {"",
    "GPU-10101010-1010-1010-1010-101010101010", "GPU-11111111-1111-1111-1111-111111111111",
    "MIG-33333333-3333-5333-b333-333333333333", "MIG-44444444-4444-5444-b444-444444444444",
    "MIG-55555555-5555-5555-b555-555555555555"};
  strncpy(s, names[d], n); return 0;
}
int nvmlDeviceGetName(h d, char *s, u n) {
  static const char *names[] = {"", "GPU zero", "GPU one", "GPU one MIG 1g.10gb", "GPU one MIG 3g.40gb",
    "GPU one MIG 2g.20gb"};
  strncpy(s, names[d], n); return 0;
}
int nvmlDeviceGetMinorNumber(h d, u *n) { *n = d - 1; return 0; }
int nvmlDeviceGetMigMode(h d, u *now, u *then) { *now = *then = d == 2; return IS_SPLIT ? 0 : 3; }
int nvmlDeviceGetMaxMigDeviceCount(h d, u *n) { *n = 7; return 0; }
int nvmlDeviceGetMigDeviceHandleByIndex(h d, u n, h *part) { *part = n + 3; return n < PARTS ? 0 : 6; }
int nvmlDeviceGetGpuInstanceId(h d, u *n) { *n = d + 4; return 0; }
int nvmlDeviceGetComputeInstanceId(h d, u *n) { *n = 0; return 0; }
int nvmlDeviceGetMemoryInfo(h d, struct memory *m) { m->total = (unsigned long long)d << 33; return 0; }
"""


def _install(directory: Path, library: str, source: str, *options: str) -> None:
    """Make a library in ``directory``; whoever has loaded another by this name keeps that."""
    written, fresh = directory / "library.c", directory / "library.so"
    written.write_text(source)
    subprocess.run(["cc", *options, "-shared", "-fPIC", "-o", fresh, written], check=True)
    fresh.replace(directory / library)


def install_driver(directory: Path, status: int) -> None:
    """Make the CUDA driver, which begins with ``status``."""
    _install(directory, "libcuda.so.1", DRIVER, f"-DSTATUS={status}")


def install_nvml(directory: Path, is_split: bool, parts: int = 2, source: str = NVML) -> None:
    """Make NVML, in which the second GPU is split into so many ``parts``, three at most, or cannot be."""
    _install(directory, "libnvidia-ml.so.1", source, f"-DIS_SPLIT={int(is_split)}", f"-DPARTS={parts}")
