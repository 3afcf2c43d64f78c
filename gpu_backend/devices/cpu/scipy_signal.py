"""``cupyx.scipy.signal`` and its windows on SciPy's, and the wavelets that SciPy has dropped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.signal
import scipy.signal.windows

from gpu_backend.devices.cpu.arrays import Array
from gpu_backend.devices.cpu.naming import describe_as
from gpu_backend.devices.cpu.scipy_functions import define_scipy
from gpu_backend.devices.cpu.scipy_objects import define_class
from gpu_backend.devices.cpu.table import define, define_value, lookup

_PREFIX = "cupyx.scipy.signal"

define_scipy(
    _PREFIX, scipy.signal, without=("choose_conv_method", "lfilter", "lfiltic", "lfilter_zi", "sosfilt", "sosfilt_zi")
)
define_scipy(f"{_PREFIX}.windows", scipy.signal.windows)

for _name in ("StateSpace", "TransferFunction", "ZerosPolesGain", "dlti", "lti"):
    define_value(getattr(scipy.signal, _name), f"{_PREFIX}.{_name}")
for _name in ("CZT", "ZoomFFT"):
    define_class(getattr(scipy.signal, _name), f"{_PREFIX}.{_name}", module=f"{_PREFIX}._czt")
describe_as(f"{_PREFIX}._ltisys.Bunch", scipy.signal._ltisys.Bunch)
define_value(scipy.signal.BadCoefficients, f"{_PREFIX}.BadCoefficients")


def _of_sequences(name: str, count: int) -> None:
    """Let the first ``count`` arguments of SciPy's function be lists too, of which it asks for their shape."""
    function = lookup(f"{_PREFIX}.{name}")

    def of_sequences(*args: object, **kwargs: object) -> Any:
        return function(*[np.asarray(one) for one in args[:count]], *args[count:], **kwargs)

    define_value(of_sequences, f"{_PREFIX}.{name}")


for _name, _count in (("welch", 1), ("csd", 2), ("coherence", 2)):
    _of_sequences(_name, _count)


@define(f"{_PREFIX}.gausspulse")
def gausspulse(t: object, *args: object, **kwargs: object) -> Any:
    """Return a sinusoid modulated by a Gaussian at the times ``t``, in their dtype; or its cutoff."""
    if isinstance(t, str):
        return scipy.signal.gausspulse(t, *args, **kwargs)
    times = np.asarray(t)
    found = scipy.signal.gausspulse(times, *args, **kwargs)
    return tuple(one.astype(times.dtype) for one in found) if isinstance(found, tuple) else found.astype(times.dtype)


@define(f"{_PREFIX}.choose_conv_method")
def choose_conv_method(in1: Array, in2: Array, mode: str = "full") -> str:
    if in1.ndim != 1 or in2.ndim != 1:
        raise NotImplementedError("Only 1d inputs are supported currently")
    return scipy.signal.choose_conv_method(in1, in2, mode)  # type: ignore[no-any-return]


@define(f"{_PREFIX}.qmf")
def qmf(hk: Array) -> Array:
    """Return the high-pass filter that mirrors the low-pass filter ``hk``."""
    hk = np.asarray(hk)
    return hk[::-1] * np.where(np.arange(hk.size) % 2, -1, 1)


@define(f"{_PREFIX}.morlet")
def morlet(M: int, w: float = 5.0, s: float = 1.0, complete: bool = True) -> Array:
    """Return the complex Morlet wavelet of ``M`` points."""
    x = np.linspace(-s * 2 * np.pi, s * 2 * np.pi, M)
    wave = np.exp(1j * w * x)
    if complete:
        wave -= np.exp(-0.5 * w**2)
    made: Array = wave * np.exp(-0.5 * x**2) * np.pi**-0.25
    return made


@define(f"{_PREFIX}.ricker")
def ricker(points: int, a: float) -> Array:
    """Return the Mexican hat of width ``a``."""
    x = (np.arange(points) - (points - 1.0) / 2) / a
    made: Array = 2 / (np.sqrt(3 * a) * np.pi**0.25) * (1 - x**2) * np.exp(-(x**2) / 2)
    return made


@define(f"{_PREFIX}.morlet2")
def morlet2(M: int, s: float, w: float = 5) -> Array:
    """Return the Morlet wavelet that `cwt` takes."""
    x = (np.arange(M) - (M - 1.0) / 2) / s
    made: Array = np.sqrt(1 / s) * np.exp(1j * w * x) * np.exp(-0.5 * x**2) * np.pi**-0.25
    return made


@define(f"{_PREFIX}.cwt")
def cwt(data: Array, wavelet: Callable[..., Array], widths: Any) -> Array:
    """Return the continuous wavelet transform of ``data``, a row for each width."""
    kind = np.result_type(np.asarray(wavelet(1, widths[0])), data)
    rows = np.empty((len(widths), len(data)), kind if kind.kind == "c" else np.float64)
    for place, width in enumerate(widths):
        points = int(min(10 * float(width), len(data)))
        rows[place] = np.convolve(data, np.conj(wavelet(points, float(width))[::-1]), mode="same")
    return rows
