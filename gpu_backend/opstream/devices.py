"""Where a handle's memory is: a handle says by its highest bits on which of the session's devices.

Device 0 has the plain numbers, so nothing of a session with one device tells of this. An op goes to the device of its
stream, as in CUDA; the default stream of a device is its handle 0.
"""

from __future__ import annotations

__all__ = ["MOST_DEVICES", "OF_DEVICE", "default_stream", "device_of"]

#: Numbers below are a device's own: far more handles than a session ever gives.
_SHIFT = 56
#: Most devices of a session: their handles are integers of 64 bits with a sign.
MOST_DEVICES = 64
#: The bits of a handle that tell of its device.
OF_DEVICE = (MOST_DEVICES - 1) << _SHIFT


def device_of(handle: int) -> int:
    """Return the number of the device that ``handle`` is on."""
    return handle >> _SHIFT


def default_stream(device: int) -> int:
    """Return the handle of the default stream of ``device``."""
    return device << _SHIFT
