"""How a cell shows that it waits for a place in the pool: one line of output, kept up to date."""

from __future__ import annotations

from html import escape
from typing import Any

from IPython.display import DisplayHandle, display


class CellNotice:
    """A line in the output of the cell that waits. See `kernelproxy.waiting.Notice`."""

    def __init__(self) -> None:
        self._handle: DisplayHandle | None = None

    def show(self, text: str) -> None:
        """Show ``text`` in place of what was shown before."""
        shown: dict[str, Any] = {"text/plain": text, "text/html": f'<div role="status">⏳ {escape(text)}</div>'}
        self._put(shown)

    def close(self, text: str) -> None:
        """Show ``text`` for good."""
        self._put({"text/plain": text, "text/html": f"<div>{escape(text)}</div>"})

    def _put(self, shown: dict[str, Any]) -> None:
        if self._handle is None:
            self._handle = display(shown, raw=True, display_id=True)
        else:
            self._handle.update(shown, raw=True)
