"""What is in force for Fourier transforms in this thread: the plan of a ``with`` block, and settings.

CuPy keeps the plan for each thread and the settings for each context; an executor, which runs one op after the other,
has one of each. So before a transform the executor is brought to what is in force where the transform was asked for.
"""

from __future__ import annotations

import threading
from contextvars import ContextVar
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary, ref

from gpu_backend.opstream.layout import Layout
from kernelproxy.calls import dispatch
from kernelproxy.calls.remote_object import RemoteInstance
from kernelproxy.session import session

#: Whether neighbouring axes are transformed at once, if they can be; else one after the other.
enable_nd_planning: ContextVar[bool] = ContextVar("cupy.fft.config.enable_nd_planning", default=True)
#: Whether transforms are spread over several GPUs, and over which.
use_multi_gpus: ContextVar[bool] = ContextVar("cupy.fft.config.use_multi_gpus", default=False)
devices: ContextVar[tuple[int, ...] | None] = ContextVar("cupy.fft.config.devices", default=None)

#: False until a thread has a plan or a setting of its own: until then nobody pays for looking.
watched = False
#: Held from the moment the executor is brought to what is in force until the transform is on its way.
lock = threading.RLock()


class InForce(NamedTuple):
    """A plan and settings."""

    plan: Any = None
    together: bool = True
    several: bool = False
    devices: tuple[int, ...] | None = None


_USUAL = InForce()
_CONFIG = RemoteInstance("cupy.fft.config", "cupy.fft._config._FFTConfig")


class _NoPlan:
    """Stands for no plan."""


_NO_PLAN = _NoPlan()
_precedents: WeakKeyDictionary[Any, dict[Any, dict[tuple[Any, ...], Layout]]] = WeakKeyDictionary()


class _Current(threading.local):
    plan: Any = None


class _Executor:
    """What has been told to which executor."""

    #: None if a telling was cut short, so that nobody knows.
    told: InForce | None = _USUAL
    pipeline: ref[Any] | None = None
    epoch = 0
    #: The plan that was told last; leaving any plan leaves all.
    plan: Any = None


_current = _Current()
_executor = _Executor()


def current_plan() -> Any:
    """Return the plan in whose ``with`` block this thread is, else None."""
    return _current.plan


def precedents(given: Any) -> dict[tuple[Any, ...], Layout] | None:
    """Return what transforms gave with the ``given`` plan, or that in force, and with these settings; else None.

    What fits a plan, and what it gives, depends on the layouts of arrays alone: what went well once goes well again.
    """
    if given is not None and _current.plan is not None:
        return None  # most often an error
    plan = _current.plan if given is None else given
    of_plan = _precedents.setdefault(_NO_PLAN if plan is None else plan, {})
    return of_plan.setdefault((enable_nd_planning.get(), use_multi_gpus.get(), devices.get()), {})


def enter(plan: Any) -> None:
    """Let this thread's transforms be done with ``plan``; None for no plan."""
    _current.plan = plan
    bring()


def bring() -> bool:
    """Bring the executor to what is in force in this thread; return True if that is nothing unusual."""
    global watched
    watched = True
    wanted = InForce(_current.plan, enable_nd_planning.get(), use_multi_gpus.get(), devices.get())
    with lock:
        pipeline = session.pipeline()
        epoch = pipeline.connection.ticket.epoch
        if _executor.pipeline is None or _executor.pipeline() is not pipeline or _executor.epoch != epoch:
            _executor.pipeline, _executor.epoch = ref(pipeline), epoch
            _executor.told, _executor.plan = _USUAL, None
        told = _executor.told
        if told != wanted:
            _executor.told = None
            _tell(wanted, told)
            _executor.told = wanted
    return wanted == _USUAL


def _tell(wanted: InForce, told: InForce | None) -> None:
    if told is None or told.together != wanted.together:
        dispatch.tell(".setattr", _CONFIG, "enable_nd_planning", wanted.together)
    if told is None or told.several != wanted.several:
        dispatch.tell(".setattr", _CONFIG, "use_multi_gpus", wanted.several)
    if wanted.devices is not None and (told is None or told.devices != wanted.devices):
        dispatch.tell(".method", _CONFIG, "set_cufft_gpus", wanted.devices)
    if told is not None and told.plan is wanted.plan:
        return
    if wanted.plan is not None:
        _executor.plan = wanted.plan
        dispatch.tell(".method", wanted.plan, "__enter__")
    elif _executor.plan is not None:
        dispatch.tell(".method", _executor.plan, "__exit__", None, None, None)
        _executor.plan = None
