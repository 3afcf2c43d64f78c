"""What holds as long as the executor lives, and so is asked of it once: how many devices there are, which versions."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any
from weakref import WeakKeyDictionary, ref

from kernelproxy.client import Client, current
from kernelproxy.namespace.device_functions import DeviceFunction

#: Functions of the host that give the same whenever they are called with the same arguments.
LASTING = frozenset(
    f"cupy.cuda.runtime.{name}"
    for name in (
        *("getDeviceCount", "getDeviceProperties", "deviceGetAttribute", "deviceCanAccessPeer"),
        *("driverGetVersion", "runtimeGetVersion"),
    )
)


class Kept:
    """Values by key that a client keeps, forgotten when its session's executor is another one."""

    def __init__(self, client: Client) -> None:
        self._client = ref(client)
        self._values: WeakKeyDictionary[Any, tuple[int, dict[Any, Any]]] = WeakKeyDictionary()

    def of_this_executor(self) -> dict[Any, Any]:
        """Return what is kept of the executor in use, to be read and changed."""
        client = self._client()
        assert client is not None  # whoever asks has it from there
        pipeline = client.session.pipeline
        epoch = pipeline.connection.ticket.epoch
        known = self._values.get(pipeline)
        if known is None or known[0] != epoch:
            known = self._values[pipeline] = epoch, {}
        return known[1]

    def is_of_this_executor(self, values: dict[Any, Any]) -> bool:
        """Tell whether the executor in use, if there is one, is that of which ``values`` are kept."""
        client = self._client()
        session = client.opened if client is not None else None
        if session is None:
            return False
        epoch, known = self._values.get(session.pipeline, (0, None))
        return known is values and epoch == session.pipeline.connection.ticket.epoch

    def get(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """Return the value of ``key``, made if there is none yet. What ``make`` raises is not kept."""
        if key not in self.of_this_executor():
            value = make()
            self.of_this_executor()[key] = value  # of the executor that has answered
        return self.of_this_executor()[key]


class _Answers(Kept):
    """What the executor's host has answered."""


class LastingFunction(DeviceFunction):
    """A function of the host that is asked once for each of its arguments."""

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """Call the function, or tell what it gave before."""
        __tracebackhide__ = True
        if kwargs or not all(type(one) is int for one in args):
            return super().__call__(*args, **kwargs)
        known = current().part(_Answers)
        answer = known.get((self._qualname, args), lambda: super(LastingFunction, self).__call__(*args))
        return dict(answer) if isinstance(answer, dict) else answer
