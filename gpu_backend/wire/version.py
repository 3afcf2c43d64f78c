"""The protocol's name and version, as the two bytes that open every message, and the version of the software."""

from __future__ import annotations

from importlib import metadata

#: First byte of every message: tells our traffic from anything else that finds the port.
MAGIC = 0x67
#: Second byte. It grows with every change that an older peer would misread.
PROTOCOL_VERSION = 7
#: What an executor knows beside it: it grows with every verb that an older one would refuse by name, and a notebook
#: looks before it uses one (`Welcome.minor`). 1: ``.store_where``. 2: ``.channel`` and what goes by one. 3: no verb;
#: its pool's gateway, which is of the same software, has groups of processes meet.
MINOR_VERSION = 3


def of_software() -> str:
    """Return the version of the software, as installed."""
    try:
        return metadata.version("gpu-workbench")
    except metadata.PackageNotFoundError:
        return "not installed"
