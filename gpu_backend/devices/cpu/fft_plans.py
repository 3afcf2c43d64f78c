"""Plans of Fourier transforms as cuFFT has them: what is transformed, where it lies, how many times. SciPy computes."""

from __future__ import annotations

import math
import threading
from typing import Any, Literal

import numpy as np
import scipy.fft

from gpu_backend.devices.cpu.arrays import Array, DType
from gpu_backend.devices.cpu.cuda_memory import alloc
from gpu_backend.devices.cpu.naming import public_class
from gpu_backend.devices.cpu.several import DEVICES
from gpu_backend.devices.cpu.table import define_value

#: What a transform makes of what: complex of complex, complex of real, real of complex.
C2C, R2C, C2R = "C2C", "R2C", "C2R"

#: cuFFT's number for a transform, by what it makes of what in which precision, and what it takes and gives.
_NUMBERS = {(C2C, "F"): 41, (R2C, "f"): 42, (C2R, "F"): 44, (C2C, "D"): 105, (R2C, "d"): 106, (C2R, "D"): 108}
_TYPES = {41: (C2C, "F", "F"), 42: (R2C, "f", "F"), 44: (C2R, "F", "f"),
          105: (C2C, "D", "D"), 106: (R2C, "d", "D"), 108: (C2R, "D", "d")}  # fmt: skip

_RESULTS = {3: "CUFFT_INVALID_TYPE", 4: "CUFFT_INVALID_VALUE", 8: "CUFFT_INVALID_SIZE", 11: "CUFFT_INVALID_DEVICE"}
_INVALID_TYPE, _INVALID_VALUE, _INVALID_SIZE, _INVALID_DEVICE = _RESULTS

#: Of a single transform over so many devices.
_LEAST_POINTS = {2: 64, 4: 64, 8: 128, 16: 1024}

_now = threading.local()


class CuFFTError(RuntimeError):
    """A plan cannot be made or carried out. ``result`` is cuFFT's number for why."""

    public_name = "cupy.cuda.cufft.CuFFTError"

    def __init__(self, result: int) -> None:
        self.result = result
        super().__init__(_RESULTS[result])


def get_current_plan() -> Plan | None:
    """Return the plan in whose ``with`` block this thread is."""
    return getattr(_now, "plan", None)


define_value(CuFFTError, CuFFTError.public_name)
define_value(get_current_plan, "cupy.cuda.cufft.get_current_plan")


def type_number(kind: str, dtype: DType) -> int:
    """Return cuFFT's number of the transform ``kind`` of arrays of ``dtype``.

    Raises
    ------
    ValueError
        If there is none.
    """
    number = _NUMBERS.get((kind, dtype.char))
    if number is None:
        raise ValueError(f"{kind} of {dtype} is none of cuFFT's transforms")
    return number


def computed(kind: str, a: Array, axes: tuple[int, ...], sizes: tuple[int, ...], norm: str, *, forward: bool) -> Array:
    """Return the transform of ``a`` along ``axes``; ``sizes`` are what a real result has along them."""
    if kind == R2C:
        made: Array = scipy.fft.rfftn(a, axes=axes, norm=norm)
        return made
    if kind == C2R:
        answer: Array = scipy.fft.irfftn(a, sizes, axes, norm)
        return answer
    result: Array = (scipy.fft.fftn if forward else scipy.fft.ifftn)(a, axes=axes, norm=norm)
    return result


class Plan:
    """What plans have in common. A plan in a ``with`` statement is what transforms in the block are done with."""

    #: The devices that it is spread over, of those that the processor stands for; None if over none.
    gpus: list[int] | None = None
    handle = 0

    def __init__(self, fft_type: int, batch: int, lengths: tuple[int, ...]) -> None:
        if fft_type not in _TYPES:
            raise CuFFTError(_INVALID_TYPE)
        if batch < 0 or (batch and any(length < 1 for length in lengths)):
            raise CuFFTError(_INVALID_SIZE)
        self.fft_type, self.batch = fft_type, batch
        self.kind, self._takes, self._gives = _TYPES[fft_type]
        self.work_area = alloc(0)  # SciPy finds its own room

    def __enter__(self) -> Plan:
        _now.plan = self
        return self

    def __exit__(self, *raised: object) -> None:
        _now.plan = None

    def _carry_out(self, source: Array, target: Array, lengths: tuple[int, ...], direction: int) -> None:
        """Transform each part of ``source`` along all but its first axis into ``target``, without a factor."""
        forward = self.kind == R2C or (self.kind == C2C and direction == -1)
        axes = tuple(range(1, source.ndim))
        target[...] = computed(self.kind, source, axes, lengths, "backward" if forward else "forward", forward=forward)

    def _elements(self, array: Array, dtype: str) -> Array:
        """Return the elements of ``array`` in the order of its memory."""
        flags = array.flags
        if array.dtype.char != dtype or not (flags.c_contiguous or flags.f_contiguous):
            raise ValueError(f"this plan is for contiguous arrays of {np.dtype(dtype)}")
        return array.reshape(-1, order="A")


@public_class("cupy.cuda.cufft.Plan1d", module="cupy.cuda.cufft")
class Plan1d(Plan):
    """``batch`` transforms of length ``nx``, one behind the other in memory."""

    def __init__(
        self, nx: int, fft_type: int, batch: int, *, devices: object = None, out: object = None, prealloc_plan: int = 0
    ) -> None:
        if devices is not None:
            self.gpus = _spread_over(devices, nx, batch, fft_type)
        super().__init__(fft_type, batch, (nx,))
        self.nx = nx

    def fft(self, a: Array, out: Array, direction: int) -> None:
        """Transform ``a`` into ``out``; -1 is forward, 1 is inverse, neither has a factor."""
        taken, given = self._elements(a, self._takes), self._elements(out, self._gives)
        half = self.nx // 2 + 1
        inner = half if self.kind == C2R else self.nx
        outer = half if self.kind == R2C else self.nx
        if taken.size < self.batch * inner or given.size < self.batch * outer:
            raise CuFFTError(_INVALID_VALUE)
        source = taken[: self.batch * inner].reshape(self.batch, inner)
        target = given[: self.batch * outer].reshape(self.batch, outer)
        self._carry_out(source, target, (self.nx,), direction)

    def get_output_array(self, a: Array) -> Array:
        """Return an array for the transform of ``a``; its contents are any."""
        return np.empty(self._output_shape(a), self._gives)

    def check_output_array(self, a: Array, out: Array) -> None:
        """Refuse an ``out`` that is none for the transform of ``a``."""
        shape, dtype = self._output_shape(a), np.dtype(self._gives)
        if out.shape != shape:
            raise ValueError(f"out must have shape {shape}.")
        if out.dtype != dtype:
            raise ValueError(f"out dtype mismatch: found {out.dtype}, expected {dtype}")

    def _output_shape(self, a: Array) -> tuple[int, ...]:
        if self.kind == C2C:
            return tuple(a.shape)
        return (*a.shape[:-1], a.shape[-1] // 2 + 1 if self.kind == R2C else self.nx)


def _spread_over(devices: object, nx: int, batch: int, fft_type: int) -> list[int]:
    """Return the devices that a plan is to be spread over.

    Raises
    ------
    ValueError
        Of what CuPy spreads over none: transforms of reals, and a single one of few points or not of a power of two.
    CuFFTError
        If one of them is not there.
    """
    if fft_type not in (_NUMBERS[C2C, "F"], _NUMBERS[C2C, "D"]):
        raise ValueError("Currently for multiple GPUs only C2C and Z2Z are supported.")
    if not isinstance(devices, (int, tuple, list)):
        raise ValueError('"devices" should be an int or an iterable of int.')
    gpus = list(range(devices) if isinstance(devices, int) else devices)
    if batch == 1:
        _require_points(nx, len(gpus))
    if len(gpus) < 2 or not all(0 <= number < DEVICES.count for number in gpus):
        raise CuFFTError(_INVALID_DEVICE)
    return gpus


def _require_points(nx: int, count: int) -> None:
    if nx & (nx - 1):
        raise ValueError("For multi-GPU FFT with batch = 1, the array size must be a power of 2.")
    if count not in _LEAST_POINTS:
        raise ValueError("For multi-GPU FFT with batch = 1, the number of devices must be 2, 4, 8, or 16.")
    if nx < _LEAST_POINTS[count]:
        raise ValueError(f"For {count} GPUs, the array length must be at least {_LEAST_POINTS[count]} (you have {nx}).")


@public_class("cupy.cuda.cufft.PlanNd", module="cupy.cuda.cufft")
class PlanNd(Plan):
    """``batch`` transforms along up to three neighbouring axes, in cuFFT's advanced layout.

    Element ``(i, j, k)`` of transform ``b`` lies at ``b * dist + ((i * embed[1] + j) * embed[2] + k) * stride``,
    counted in elements; without ``embed`` the transforms lie one behind the other.
    """

    def __init__(
        self, shape: Any, inembed: Any, istride: int, idist: int, onembed: Any, ostride: int, odist: int,
        fft_type: int, batch: int, order: str, last_axis: int, last_size: int | None, *, prealloc_plan: int = 0,
    ) -> None:  # fmt: skip
        super().__init__(fft_type, batch, tuple(shape))
        self.shape, self.order, self.last_axis, self.last_size = tuple(shape), order, last_axis, last_size
        self._in, self._out = (inembed, istride, idist), (onembed, ostride, odist)

    def fft(self, a: Array, out: Array, direction: int) -> None:
        """Transform ``a`` into ``out``; -1 is forward, 1 is inverse, neither has a factor."""
        half = (*self.shape[:-1], self.shape[-1] // 2 + 1)
        source = self._laid_out(self._elements(a, self._takes), half if self.kind == C2R else self.shape, *self._in)
        target = self._laid_out(self._elements(out, self._gives), half if self.kind == R2C else self.shape, *self._out)
        self._carry_out(source, target, self.shape, direction)

    def _laid_out(self, elements: Array, dims: tuple[int, ...], embed: Any, stride: int, dist: int) -> Array:
        if embed is None:
            embed, stride, dist = dims, 1, math.prod(dims)
        steps = [dist, *(stride * math.prod(embed[place + 1 :]) for place in range(len(dims)))]
        shape = (self.batch, *dims)
        last = sum((count - 1) * step for count, step in zip(shape, steps, strict=True))
        if min(steps) < 0 or (self.batch and last >= elements.size):  # cuFFT would reach beyond the array
            raise CuFFTError(_INVALID_VALUE)
        return np.lib.stride_tricks.as_strided(elements, shape, [step * elements.itemsize for step in steps])

    def get_output_array(self, a: Array, order: Literal["C", "F"] = "C") -> Array:
        """Return an array for the transform of ``a``; its contents are any."""
        shape = list(a.shape)
        if self.kind != C2C:
            shape[self.last_axis] = self.last_size
        made: Array = np.empty(shape, self._gives, order)
        return made

    def check_output_array(self, a: Array, out: Array) -> None:
        """Refuse an ``out`` that is none for the transform of ``a``."""
        if out is a:
            return
        if self.kind == C2C:
            if out.shape != a.shape:
                raise ValueError("output shape mismatch")
            if out.dtype != a.dtype:
                raise ValueError("output dtype mismatch")
        else:
            self._check_changed(a, out)
        if (out.flags.f_contiguous, out.flags.c_contiguous) != (a.flags.f_contiguous, a.flags.c_contiguous):
            raise ValueError("output contiguity mismatch")

    def _check_changed(self, a: Array, out: Array) -> None:
        if out.ndim != a.ndim:
            raise ValueError("output dimension mismatch")
        wanted = [self.last_size if axis == self.last_axis else length for axis, length in enumerate(a.shape)]
        if list(out.shape) != wanted:
            raise ValueError("output shape is incorrecct")  # CuPy's spelling
        if out.dtype.char != self._gives:
            raise ValueError("output dtype is unexpected")
