"""The protocol's name and version, as the two bytes that open every message, and the version of the software."""

from __future__ import annotations

from importlib import metadata

#: First byte of every message: tells our traffic from anything else that finds the port.
MAGIC = 0x67
#: Second byte. It grows with every change that an older peer would misread.
PROTOCOL_VERSION = 7


def of_software() -> str:
    """Return the version of the software, as installed."""
    try:
        return metadata.version("gpu-workbench")
    except metadata.PackageNotFoundError:
        return "not installed"
