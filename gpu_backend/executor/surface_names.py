"""Which names an op may use, and what they are on this device: the executor's allow-list."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpu_backend.devices.base import Device
from gpu_backend.opstream.draws import GENERATOR, STATE
from gpu_backend.opstream.surface import Constant, Module, Property, Ufunc, is_public_attribute, load
from gpu_backend.opstream.surface.not_served import refusal

#: Private functions of CuPy's that choose how its public ones compute. There is no other way to choose.
COMPUTING_SETTINGS = frozenset(
    f"cupy._core.{verb}_{what}"
    for verb in ("get", "set")
    for what in ("compute_type", "elementwise_accelerators", "reduction_accelerators", "routine_accelerators")
)
#: Where a notebook lays hands on the plans of transforms, and on how they are made.
_PLANS = ("cupy.fft.config", "cupy.fft._", "cupy.cuda.cufft")
#: Classes whose methods are called by their names: what is written in Python takes any object for its own.
_OF_DRAWS = (STATE, GENERATOR)


def is_of_plans(name: str) -> bool:
    """Tell whether what is called ``name`` can change by which plan ``cupy.fft`` goes."""
    return name.startswith(_PLANS) or name.endswith(".get_fft_plan")


class SurfaceNames:
    """Resolves public names, each once."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._surface = load()

    def resolve(self, qualname: str) -> Any:
        """Return the function, class or object made at import that is called ``qualname`` on this device.

        Raises
        ------
        AttributeError
            If the name is not public, not allowed from afar, or not there on this device.
        """
        if qualname in COMPUTING_SETTINGS:
            return self._device.resolve(qualname)
        if not is_public_attribute(qualname.rpartition(".")[2]):
            raise AttributeError(f"{qualname} is asked of an object, not by its name.")
        described = self._described_as(qualname)
        if not self._surface.is_public(described):
            raise AttributeError(f"{qualname} is not a public name of CuPy {self._surface.version}.")
        if (why := refusal(qualname)) is not None:
            raise AttributeError(why)
        if isinstance(self._surface.resolved(described), (Module, Property, Constant)):
            raise AttributeError(f"{qualname} is nothing that can be called.")
        found = self._device.resolve(qualname)
        owner = self._surface.canonical(described).rpartition(".")[0]
        return _of_objects(self._device.resolve(owner), found) if owner in _OF_DRAWS else found

    def _described_as(self, qualname: str) -> str:
        """Return the name that tells what ``qualname`` is: for "cupy.add.reduce" that is "cupy.ufunc.reduce"."""
        owner, _, method = qualname.rpartition(".")
        return f"cupy.ufunc.{method}" if isinstance(self._surface.get(owner), Ufunc) else qualname


def _of_objects(kind: Any, method: Any) -> Callable[..., Any]:
    """Return ``method`` for objects of the class ``kind`` only; TypeError for others, as of a method in C."""

    def checked(target: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(target, kind):
            raise TypeError(f"This takes a {kind.__name__}, and no {type(target).__name__}.")
        return method(target, *args, **kwargs)

    return checked
