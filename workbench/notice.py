"""How a cell shows what it waits for: one line of output, kept up to date."""

from __future__ import annotations

from html import escape
from typing import Any

from IPython.display import DisplayHandle, display

#: As large as code, as far to the right as what is printed, and in its theme's quieter colour: told beside results.
_LINE = "font-size: var(--jp-code-font-size, 13px); padding-left: 1ch; color: var(--jp-content-font-color2, inherit)"
#: Bar or dial beside the text, however many lines that takes: none of them goes on under it.
_ROW = f"{_LINE}; display: flex; align-items: baseline; gap: 0.7em"
#: Browsers put the bar above the middle of the small letters beside it.
_BAR = "flex: none; width: 7em; position: relative; top: 0.2em; accent-color: var(--jp-brand-color1, auto)"
_DIAL = "flex: none"
#: What has no known part turns by a quarter each time it is told anew. A bar without a part is moved by the browser,
#: also in a notebook that was saved or cut off meanwhile, where nothing goes on.
_QUARTERS = "◐◓◑◒"
_TEXT = "min-width: 0; overflow-wrap: anywhere"


class CellNotice:
    """A line in the output of the cell that waits. See `kernelproxy.session.notice.Notice`."""

    def __init__(self) -> None:
        self._handle: DisplayHandle | None = None
        self._turns = 0

    def show(self, text: str, part: float | None = None) -> None:
        """Show ``text`` in place of what was shown before, behind a bar that ``part`` fills, or a dial that turns."""
        words = f'<span style="{_TEXT}">{escape(text)}</span>'
        self._put(text, f'<div role="status" style="{_ROW}">{self._sign(part)}{words}</div>')

    def close(self, text: str) -> None:
        """Show ``text`` for good, or until something else is shown."""
        self._put(text, f'<div style="{_LINE}">{escape(text)}</div>')

    def _sign(self, part: float | None) -> str:
        if part is not None:
            return f'<progress style="{_BAR}" max="1" value="{part:.3f}"></progress>'
        self._turns += 1
        return f'<span style="{_DIAL}" aria-hidden="true">{_QUARTERS[self._turns % len(_QUARTERS)]}</span>'

    def _put(self, text: str, html: str) -> None:
        shown: dict[str, Any] = {"text/plain": text, "text/html": html}
        if self._handle is None:
            self._handle = display(shown, raw=True, display_id=True)
        else:
            self._handle.update(shown, raw=True)
