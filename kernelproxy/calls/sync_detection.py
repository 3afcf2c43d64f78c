"""``cupyx.allow_synchronize``: finds the lines of a program that wait for the device."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from contextvars import ContextVar

from kernelproxy.public_names import make

#: CuPy's own words.
_DEPRECATED = (
    "cupyx.allow_synchronize will be removed in future releases as it is not possible to reliably detect "
    "synchronizations."
)
_allowed: ContextVar[bool] = ContextVar("_allowed", default=True)


@contextlib.contextmanager
def allow_synchronize(allow: bool) -> Iterator[None]:
    """Let reading of contents raise `DeviceSynchronized` inside the ``with`` block, unless ``allow``."""
    warnings.warn(_DEPRECATED, stacklevel=3)
    token = _allowed.set(allow)
    try:
        yield
    finally:
        _allowed.reset(token)


def check() -> None:
    """Notice that the notebook is about to wait for the device.

    Raises
    ------
    cupyx.DeviceSynchronized
        Inside of ``allow_synchronize(False)``.
    """
    if not _allowed.get():
        raise make("cupyx.DeviceSynchronized")("Device synchronization was detected while disallowed.")
