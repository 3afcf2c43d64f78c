"""Whether the gateway itself was kept from the processor: then it has not read yet what others said meanwhile."""

from __future__ import annotations

import asyncio
from time import monotonic

#: A pause that took so much longer than it should was none of the machine's usual delays, seconds.
_LATE_SECONDS = 2.0


async def paused_in_time(seconds: float) -> bool:
    """Sleep for ``seconds``; tell whether that took about as long, and not as if this process had been stopped."""
    begun = monotonic()
    await asyncio.sleep(seconds)
    return monotonic() - begun < seconds + _LATE_SECONDS
