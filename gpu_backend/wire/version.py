"""The protocol's name and version, as the two bytes that open every message."""

from __future__ import annotations

#: First byte of every message: tells our traffic from anything else that finds the port.
MAGIC = 0x67
#: Second byte. It grows with every change that an older peer would misread.
PROTOCOL_VERSION = 7
