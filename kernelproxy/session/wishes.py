"""What a session asks for: from the notebook's own words, else the environment, else the settings file."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from msgspec.structs import replace

from gpu_backend.wire.bounds import PRIORITY, Bound
from gpu_backend.wire.control import OpenSession
from gpu_backend.wire.errors import PoolRefusal, quoted
from gpu_backend.wire.wish import Wish
from kernelproxy.session.amounts import bytes_from_words
from kernelproxy.settings import DEVICES, ClientSettings, config_path

CLASS_VARIABLE = "GPU_WORKBENCH_CLASS"
REQUEST_VARIABLE = "GPU_WORKBENCH_REQUEST"
LIMIT_VARIABLE = "GPU_WORKBENCH_LIMIT"
PRIORITY_VARIABLE = "GPU_WORKBENCH_PRIORITY"
AFFINITY_VARIABLE = "GPU_WORKBENCH_AFFINITY"
ANTI_AFFINITY_VARIABLE = "GPU_WORKBENCH_ANTI_AFFINITY"
EXCLUSION_VARIABLE = "GPU_WORKBENCH_EXCLUSION"
WHOLE_DEVICE_VARIABLE = "GPU_WORKBENCH_WHOLE_DEVICE"
MEMORY_VARIABLE = "GPU_WORKBENCH_MEMORY"
DEVICES_VARIABLE = "GPU_WORKBENCH_DEVICES"
#: What a session may be, beside "" for the default.
CLASSES = ("production", "interactive", "best-effort")
_TRUTHS = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}


class Wished(NamedTuple):
    """What a session asks for. ``memory_bytes`` 0 is the pool's default."""

    wish: Wish
    memory_bytes: int


class Wishes:
    """What a client asks for."""

    def __init__(self) -> None:
        #: What the notebook said with `%gpu class`; it counts for the session that it has and for the next.
        self.said: Wish | None = None
        #: Device memory that a program asks for in its own words, before environment and settings; None if it does not.
        self.memory_bytes: int | None = None
        #: How many devices the notebook asked for with `%gpu devices`, for the next session; None if it did not.
        self.devices: int | None = None
        #: Where each device comes from a session of its own: the label by which these keep apart. "" where one has all.
        self.apart = ""
        #: What its sessions are called, for people; "" for the notebook's path.
        self.label = ""

    def wished(self, settings: ClientSettings) -> Wished:
        """Return what a session that is opened now asks for.

        Raises
        ------
        PoolRefusal
            If a setting or a variable is no class, no number or no amount; the message names it.
        """
        wish = Wish(
            _value(CLASS_VARIABLE, settings, "session_class", _class),
            _value(REQUEST_VARIABLE, settings, "request", _fraction),
            _value(LIMIT_VARIABLE, settings, "limit", _fraction),
            _value(PRIORITY_VARIABLE, settings, "priority", partial(_whole, PRIORITY)),
            os.environ.get(AFFINITY_VARIABLE) or settings.affinity,
            os.environ.get(ANTI_AFFINITY_VARIABLE) or settings.anti_affinity or self.apart,
            os.environ.get(EXCLUSION_VARIABLE) or settings.exclusion,
            _value(WHOLE_DEVICE_VARIABLE, settings, "whole_device", _truth),
            1 if self.apart else self.count(settings),
        )
        if self.said is not None:  # how it shares; where it goes is not said there
            said = self.said
            wish = replace(wish, kind=said.kind, request=said.request, limit=said.limit, priority=said.priority)
        if self.memory_bytes is not None:
            return Wished(wish, self.memory_bytes)
        return Wished(wish, _value(MEMORY_VARIABLE, settings, "memory", lambda said: bytes_from_words(said or "0")))

    def count(self, settings: ClientSettings) -> int:
        """Return how many devices are asked for; raises as `wished` does."""
        if self.devices is not None:
            return self.devices
        return int(_value(DEVICES_VARIABLE, settings, "devices", partial(_whole, DEVICES)))

    def opening(self, settings: ClientSettings) -> OpenSession:
        """Return how a session is asked for in this process; raises as `wished` does. It has no name for a wait yet."""
        wish, memory_bytes = self.wished(settings)
        return OpenSession(0, self.label or os.environ.get("JPY_SESSION_NAME", ""), "", memory_bytes, wish)


def _class(said: str) -> str:
    if said and said not in CLASSES:
        raise ValueError(f"{quoted(said)} is no class; there are {', '.join(CLASSES)}")
    return said


def _truth(said: str | bool) -> bool:
    if isinstance(said, bool):
        return said
    if said.lower() not in _TRUTHS:
        raise ValueError(f"{quoted(said)} is neither true nor false")
    return _TRUTHS[said.lower()]


def _fraction(said: str | float) -> float:
    try:
        part = float(said)
    except ValueError:
        raise ValueError(f"{quoted(str(said))} is no number") from None
    if not 0 <= part <= 1:  # which no NaN is
        raise ValueError(f"{part:g} is no part of a device: it is from 0 to 1")
    return part


def _whole(bound: Bound, said: str | int) -> int:
    try:
        number = int(said)
    except ValueError:
        raise ValueError(f"{quoted(str(said))} is no number without a fraction") from None
    return bound.checked(number)


def _value(variable: str, settings: ClientSettings, name: str, convert: Callable[[Any], Any]) -> Any:
    text = os.environ.get(variable)
    try:
        return convert(text if text else getattr(settings, name))
    except ValueError as error:
        where = variable if text else f"{name} in {config_path()}"
        raise PoolRefusal(f"{where} is not right: {error}") from None
