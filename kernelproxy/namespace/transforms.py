"""Fourier transforms, and the plans that they are done with."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelproxy import dispatch, planning
from kernelproxy.infer.outcome import Unproved
from kernelproxy.namespace.function import RemoteFunction
from kernelproxy.remote_object import RemoteObject

#: Where the functions are that ask for the plan and the settings in force.
MODULES = ("cupy.fft.", "cupyx.scipy.fft.", "cupyx.scipy.fftpack.")

#: Those that take no NumPy array.
_OF_REMOTE_ARRAYS = frozenset(
    f"{inverse}{kind}{many}" for inverse in ("", "i") for kind in ("fft", "rfft", "hfft") for many in ("", "2", "n")
)

get_current_plan = planning.current_plan


class Transform(RemoteFunction):
    """A function that a plan or a setting may change."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        __tracebackhide__ = True
        if args and type(args[0]) is np.ndarray and self.__name__ in _OF_REMOTE_ARRAYS:
            raise TypeError("The input array a must be a cupy.ndarray")
        if not planning.watched:
            return super().__call__(*args, **kwargs)
        with planning.lock:
            if planning.bring():
                return super().__call__(*args, **kwargs)
            return dispatch.run_proved(self._qualname, args, kwargs, Unproved("a plan or a setting is in force"))


class Plan(RemoteObject):
    """A plan. In a ``with`` statement, what this thread's transforms in the block are done with."""

    def __enter__(self) -> Any:
        planning.enter(self)
        return self

    def __exit__(self, *raised: Any) -> None:
        planning.enter(None)


class Plan1d(Plan):
    """Transforms along one axis."""

    _qualname = "cupy.cuda.cufft.Plan1d"
    __module__ = "cupy.cuda.cufft"


class PlanNd(Plan):
    """Transforms along neighbouring axes at once."""

    _qualname = "cupy.cuda.cufft.PlanNd"
    __module__ = "cupy.cuda.cufft"


class XtPlanNd(Plan):
    """Transforms along neighbouring axes in any precision, which only `fft` of the plan itself uses."""

    _qualname = "cupy.cuda.cufft.XtPlanNd"
    __module__ = "cupy.cuda.cufft"
