"""News that somebody may wait for: places that were taken or became free."""

from __future__ import annotations

import asyncio


class Changes:
    """Counts what happened, and wakes who waits for more."""

    def __init__(self) -> None:
        #: How often something happened.
        self.count = 0
        self._event = asyncio.Event()

    def tell(self) -> None:
        """Something happened."""
        self.count += 1
        self._event.set()
        self._event = asyncio.Event()

    async def wait(self, seconds: float) -> None:
        """Wait until something happens, or for so long."""
        try:
            async with asyncio.timeout(seconds):
                await self._event.wait()
        except TimeoutError:
            return
