"""What CuPy gives where it gives a function, such as the solver of ``factorized``: it is called, and that is all."""

from __future__ import annotations

from typing import Any

from kernelproxy.calls import dispatch
from kernelproxy.calls.remote_object import RemoteObject


class RemoteRoutine(RemoteObject):
    """A function that stays remote. It has no attributes but those of every function."""

    _qualname = "builtins.function"
    __name__ = "function"

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"'function' object has no attribute {name!r}")

    def __setattr__(self, name: str, value: object) -> None:
        if not name.startswith("_"):
            raise AttributeError(f"'function' object has no attribute {name!r}")
        object.__setattr__(self, name, value)

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """Call the function."""
        return dispatch.ask_object(".call", self, *args, **kwargs)

    def __repr__(self) -> str:
        return "<function (remote)>"
