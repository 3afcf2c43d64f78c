"""CUDA's functions that are told a device by its number: which of a notebook's devices that is, whoever has it."""

from __future__ import annotations

from collections.abc import Callable
from operator import index
from typing import Any

from kernelproxy.calls.brought import on_device
from kernelproxy.calls.remote_function import RemoteFunction
from kernelproxy.client import Client, current
from kernelproxy.public_names import make

__all__ = ["OF_DEVICES", "DeviceFunction", "require_device"]

_RUNTIME = "cupy.cuda.runtime."


def require_device(device: int) -> None:
    """Raise what CUDA does if no device has this number."""
    if device != 0 and not 0 < device < current().devices:
        raise make("cupy.cuda.runtime.CUDARuntimeError")("cudaErrorInvalidDevice: invalid device ordinal")


class DeviceFunction(RemoteFunction):
    """A function of the host that is told a device; it is that device's executor that answers."""

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """Call the function; raises as CUDA's."""
        __tracebackhide__ = True
        client = current()
        _ = client.session  # where its devices come from is known once they are there
        if not client.members:
            return super().__call__(*args, **kwargs)
        signature = self.__signature__
        told: tuple[Any, ...] = args if signature is None else signature.bind(*args, **kwargs).args
        given = [one if isinstance(one, str) else index(one) for one in told]
        return _OF_SEVERAL[self._qualname](client, super().__call__, *given)


_Ask = Callable[..., Any]


def _count(client: Client, ask: _Ask) -> int:
    return client.devices


def _at(client: Client, ask: _Ask, device: int) -> Any:
    """Return what the executor of ``device`` says of it."""
    require_device(device)
    with on_device(client, device):
        return ask(client.having(device)[1])


def _attribute(client: Client, ask: _Ask, attribute: int, device: int) -> Any:
    return _at(client, lambda number: ask(attribute, number), device)


def _by_bus(client: Client, ask: _Ask, bus: str) -> int:
    """Return the first device that its own host finds there."""
    failed: Exception | None = None
    for number in range(client.devices):
        try:
            _at(client, lambda _: ask(bus), number)
        except RuntimeError as error:
            failed = error
        else:
            return number
    assert failed is not None  # there is a device at least
    raise failed


def _can_access(client: Client, ask: _Ask, device: int, peer: int) -> int:
    """Return what CUDA says of one device with itself; no executor's device reaches another's."""
    require_device(device)
    require_device(peer)
    return int(_at(client, lambda number: ask(number, number), device)) if device == peer else 0


def _refuse_access(client: Client, ask: _Ask, peer: int, *flags: int) -> None:
    require_device(peer)
    raise make("cupy.cuda.runtime.CUDARuntimeError")(
        "cudaErrorPeerAccessUnsupported: peer access is not supported between these two devices"
    )


_OF_SEVERAL: dict[str, Callable[..., Any]] = {
    f"{_RUNTIME}getDeviceCount": _count,
    f"{_RUNTIME}getDeviceProperties": _at,
    f"{_RUNTIME}deviceGetPCIBusId": _at,
    f"{_RUNTIME}deviceGetAttribute": _attribute,
    f"{_RUNTIME}deviceGetByPCIBusId": _by_bus,
    f"{_RUNTIME}deviceCanAccessPeer": _can_access,
    f"{_RUNTIME}deviceEnablePeerAccess": _refuse_access,
    f"{_RUNTIME}deviceDisablePeerAccess": _refuse_access,
}
#: The functions that are told a device, or of how many there are.
OF_DEVICES = frozenset(_OF_SEVERAL)
