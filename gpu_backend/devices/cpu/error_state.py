"""``cupyx.errstate``: whether a singular matrix and the like is an error."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from gpu_backend.devices.cpu.naming import public_class
from gpu_backend.devices.cpu.table import define_value

_DEFAULTS: dict[str, Any] = {
    "divide": None, "over": None, "under": None, "invalid": None, "linalg": "ignore",
}  # fmt: skip

_state: ContextVar[dict[str, Any] | None] = ContextVar("_state", default=None)


def linalg_raises() -> bool:
    """Tell whether a computation without an answer raises ``LinAlgError``."""
    return bool(geterr()["linalg"] == "raise")


def geterr() -> dict[str, Any]:
    """Return what is done about which error."""
    return dict(_state.get() or _DEFAULTS)


def seterr(
    *,
    divide: object = None,
    over: object = None,
    under: object = None,
    invalid: object = None,
    linalg: str | None = None,
) -> dict[str, Any]:
    """Set what is done about an error and return what was done before.

    Raises
    ------
    NotImplementedError
        For floating-point errors, which a GPU does not report.
    """
    before = geterr()
    if any(value is not None for value in (divide, over, under, invalid)):
        raise NotImplementedError
    after = dict(before)
    if linalg is not None:
        if linalg not in ("ignore", "raise"):
            raise NotImplementedError
        after["linalg"] = linalg
    _state.set(after)
    return before


@public_class("cupyx.errstate", module="cupyx._ufunc_config")
class errstate:
    """A block in which errors are treated otherwise; arguments as of `seterr`."""

    def __init__(self, **kwargs: str | None) -> None:
        self.kwargs = kwargs

    def __enter__(self) -> errstate:
        self._before = seterr(**self.kwargs)
        return self

    def __exit__(self, *args: object) -> None:
        _state.set(self._before)


define_value(geterr, "cupyx.geterr")
define_value(seterr, "cupyx.seterr")
