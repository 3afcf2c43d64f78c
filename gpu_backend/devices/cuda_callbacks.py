"""Callbacks of cuFFT: those that NVRTC compiles for the GPU."""

from __future__ import annotations

from typing import Any

from cupy.fft import _callback, _config


def set_callbacks(*args: Any, **kwargs: Any) -> Any:
    """Return the context in which transforms call the functions given: stands for ``set_cufft_callbacks``.

    Raises
    ------
    ValueError
        Unless ``cb_ver`` is "jit". The other kind becomes a library with code of the host, which would run in this
        process.
    """
    if kwargs.get("cb_ver") != "jit":
        raise ValueError(
            'Callbacks of transforms are compiled for the GPU alone here: pass cb_ver="jit". '
            'What cb_ver="legacy" compiles is also code of the host.'
        )
    return _callback.set_cufft_callbacks(*args, **kwargs)


def install() -> None:
    """Make it what ``cupy.fft.config`` offers."""
    _config._FFTConfig.set_cufft_callbacks = staticmethod(set_callbacks)
