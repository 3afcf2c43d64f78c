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
from kernelproxy.calls.stand_ins import StandIn
from kernelproxy.client import Client

#: Whether neighbouring axes are transformed at once, if they can be; else one after the other.
enable_nd_planning: ContextVar[bool] = ContextVar("cupy.fft.config.enable_nd_planning", default=True)
#: Whether transforms are spread over several GPUs, and over which.
use_multi_gpus: ContextVar[bool] = ContextVar("cupy.fft.config.use_multi_gpus", default=False)
devices: ContextVar[tuple[int, ...] | None] = ContextVar("cupy.fft.config.devices", default=None)


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


class _Current(threading.local):
    plan: Any = None


class Planning:
    """What is in force for a client's transforms, and what its executor was told of it."""

    def __init__(self, client: Client) -> None:
        #: False until a thread has a plan or a setting of its own: until then nobody pays for looking.
        self.watched = False
        #: Held from the moment the executor is brought to what is in force until the transform is on its way.
        self.lock = threading.RLock()
        self._client = ref(client)
        self._current = _Current()
        self._precedents: WeakKeyDictionary[Any, dict[Any, dict[tuple[Any, ...], Layout]]] = WeakKeyDictionary()
        #: None if a telling was cut short, so that nobody knows.
        self._told: InForce | None = _USUAL
        #: The plan that was told last; leaving any plan leaves all.
        self._told_plan: Any = None
        #: Who was told.
        self._executor: tuple[ref[Any], int] | None = None

    def current_plan(self) -> Any:
        """Return the plan in whose ``with`` block this thread is, else None."""
        return self._current.plan

    def precedents(self, given: StandIn | None) -> dict[tuple[Any, ...], Layout] | None:
        """Return what transforms gave with the ``given`` plan, or that in force, and with these settings; else None.

        What fits a plan, and what it gives, depends on the layouts of arrays alone: what went well once goes well
        again.
        """
        if given is not None and self._current.plan is not None:
            return None  # most often an error
        plan = self._current.plan if given is None else given
        of_plan = self._precedents.setdefault(_NO_PLAN if plan is None else plan, {})
        return of_plan.setdefault((enable_nd_planning.get(), use_multi_gpus.get(), devices.get()), {})

    def enter(self, plan: StandIn | None) -> None:
        """Let this thread's transforms be done with ``plan``; None for no plan."""
        self._current.plan = plan
        self.bring()

    def bring(self) -> bool:
        """Bring the executor to what is in force in this thread; return True if that is nothing unusual."""
        self.watched = True
        wanted = InForce(self._current.plan, enable_nd_planning.get(), use_multi_gpus.get(), devices.get())
        client = self._client()
        assert client is not None  # whoever computes holds it
        with self.lock, client:
            self._look_who_computes(client)
            told = self._told
            if told != wanted:
                self._told = None
                self._tell(wanted, told)
                self._told = wanted
        return wanted == _USUAL

    def _look_who_computes(self, client: Client) -> None:
        """Forget what was told, if the executor is another one."""
        pipeline = client.session.pipeline
        epoch = pipeline.connection.ticket.epoch
        if self._executor is None or self._executor[0]() is not pipeline or self._executor[1] != epoch:
            self._executor = ref(pipeline), epoch
            self._told, self._told_plan = _USUAL, None

    def _tell(self, wanted: InForce, told: InForce | None) -> None:
        if told is None or told.together != wanted.together:
            dispatch.tell(".setattr", _CONFIG, "enable_nd_planning", wanted.together)
        if told is None or told.several != wanted.several:
            dispatch.tell(".setattr", _CONFIG, "use_multi_gpus", wanted.several)
        if wanted.devices is not None and (told is None or told.devices != wanted.devices):
            dispatch.tell(".method", _CONFIG, "set_cufft_gpus", wanted.devices)
        if told is not None and told.plan is wanted.plan:
            return
        if wanted.plan is not None:
            self._told_plan = wanted.plan
            dispatch.tell(".method", wanted.plan, "__enter__")
        elif self._told_plan is not None:
            dispatch.tell(".method", self._told_plan, "__exit__", None, None, None)
            self._told_plan = None
