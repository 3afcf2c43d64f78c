"""Where a user's own pool is: asked on a notebook's side too, which has nothing of a pool installed."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["default_root"]


def default_root() -> Path:
    """Return where a user's own pool keeps its state."""
    base = os.environ.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local" / "state") / "gpu-workbench" / "pool"
