"""What is raised where a connection is of no more use."""

from __future__ import annotations


class ConnectionLost(ConnectionError):
    """The peer is gone, or does not speak our format."""
