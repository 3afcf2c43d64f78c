"""Under which circumstances a benchmark ran: machine, versions, commit. Written into every result."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

_PACKAGES = ("gpu-workbench", "cupy-cuda12x", "cupy-cuda13x", "numpy", "scipy", "pyzmq", "msgspec", "ipykernel")


def circumstances() -> dict[str, Any]:
    """Return what a reader needs to judge the figures: machine, GPU, versions, commit."""
    return {
        "commit": _output(["git", "describe", "--always", "--dirty", "--abbrev=12"]) or "unknown",
        "machine": {
            "processor": _processor(),
            "cores": len(os.sched_getaffinity(0)),
            "system": f"{platform.system()} {platform.machine()}",
            "gpu": _output(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]) or "none",
        },
        "versions": {"python": platform.python_version(), **_versions()},
    }


def _versions() -> dict[str, str]:
    found = {}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _output(command: list[str]) -> str:
    try:
        done = subprocess.run(
            command, cwd=Path(__file__).parent, capture_output=True, text=True, timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
