"""Fourier transforms, and the plans that they are done with."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_backend.opstream.proof.outcome import Unproved
from gpu_backend.opstream.proof.registry import key_of
from gpu_backend.wire import values as wire
from kernelproxy.calls import array_core, dispatch
from kernelproxy.calls.array_core import ArrayCore
from kernelproxy.calls.planning import Planning
from kernelproxy.calls.remote_function import RemoteFunction
from kernelproxy.calls.remote_object import RemoteObject
from kernelproxy.client import current

#: Where the functions are that ask for the plan and the settings in force.
MODULES = ("cupy.fft.", "cupyx.scipy.fft.", "cupyx.scipy.fftpack.")

#: Those that take no NumPy array.
_OF_REMOTE_ARRAYS = frozenset(
    f"{inverse}{kind}{many}" for inverse in ("", "i") for kind in ("fft", "rfft", "hfft") for many in ("", "2", "n")
)
_OF_REALS = ("rfft", "ihfft")
#: So many positional arguments say nothing of ``overwrite_x``, in any of the modules.
_BEFORE_OVERWRITING = 3
_MOST_PRECEDENTS = 1_024


def get_current_plan() -> Any:
    """Return the plan in whose ``with`` block this thread is, else None."""
    return current().part(Planning).current_plan()


class Transform(RemoteFunction):
    """A function that a plan or a setting may change."""

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """Call the function."""
        __tracebackhide__ = True
        first: Any = args[0] if args else None
        if type(first) is np.ndarray and self.__name__ in _OF_REMOTE_ARRAYS:
            raise TypeError("The input array a must be a cupy.ndarray")
        plan = kwargs.get("plan") if kwargs else None
        is_plain = type(first) is array_core.array_class  # what nearly all are given
        planning = (first._client if is_plain else dispatch.whose(args)).part(Planning)
        if plan is None and not planning.watched:
            if is_plain and not array_core.is_subclassed:
                return dispatch.call(self._qualname, args, kwargs)
            return super().__call__(*args, **kwargs)
        with planning.lock:
            usual = not planning.watched or planning.bring()
            if plan is None and usual:
                return super().__call__(*args, **kwargs)
            return self._as_before(planning, args, kwargs, plan)

    def _as_before(self, planning: Planning, args: tuple[object, ...], kwargs: dict[str, object], plan: object) -> Any:
        """Call the function: without waiting, if such a call went well before with this plan and these settings."""
        __tracebackhide__ = True
        key = self._key(args, {name: value for name, value in kwargs.items() if name != "plan"})
        known = planning.precedents(plan) if key is not None and isinstance(plan, (Plan, type(None))) else None
        if known is None or key not in known:
            made = dispatch.run_proved(self._qualname, args, kwargs, Unproved("a plan or a setting is in force"))
            if known is not None and _is_new(made, args):
                if len(known) >= _MOST_PRECEDENTS:
                    known.clear()
                known[key] = made._layout
            return made
        return dispatch.run_proved(self._qualname, args, kwargs, known[key])

    def _key(self, args: tuple[object, ...], about: dict[str, object]) -> Any:
        """Return what success and result depend on beside the plan; None if more than layouts may count."""
        if not args or not isinstance(args[0], ArrayCore):
            return None
        if len(args) > _BEFORE_OVERWRITING or "overwrite_x" in about:
            return None
        if args[0].dtype.kind == "c" and self.__name__.startswith(_OF_REALS):
            return None  # it warns each time
        return key_of(self._qualname, dispatch.layouts(args), dispatch.layouts(about))


def _is_new(made: object, args: tuple[object, ...]) -> bool:
    return isinstance(made, ArrayCore) and type(made._ref) is wire.Ref and made is not args[0]


class Plan(RemoteObject):
    """A plan. In a ``with`` statement, what this thread's transforms in the block are done with."""

    def __enter__(self) -> Any:
        (self._client or current()).part(Planning).enter(self)
        return self

    def __exit__(self, *raised: object) -> None:
        (self._client or current()).part(Planning).enter(None)


class Plan1d(Plan):
    """Transforms along one axis."""

    _qualname = "cupy.cuda.cufft.Plan1d"


class PlanNd(Plan):
    """Transforms along neighbouring axes at once."""

    _qualname = "cupy.cuda.cufft.PlanNd"


class XtPlanNd(Plan):
    """Transforms along neighbouring axes in any precision, which only `fft` of the plan itself uses."""

    _qualname = "cupy.cuda.cufft.XtPlanNd"
