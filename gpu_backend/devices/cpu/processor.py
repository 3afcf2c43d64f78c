"""What the processor is called."""

from __future__ import annotations

import functools
import platform


@functools.cache
def processor_name() -> str:
    """Return the maker's name of this machine's processor."""
    try:
        with open("/proc/cpuinfo") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass  # not Linux
    return platform.processor() or platform.machine()
