"""Docstrings of remote functions: fetched from the executor when somebody reads them."""

from __future__ import annotations

from typing import Any

from gpu_backend.wire.errors import WorkbenchError
from gpu_backend.wire.messages import Want


class _LazyDoc:
    """``__doc__`` of instances; the class keeps its own."""

    def __get__(self, instance: Any, owner: type) -> str:
        if instance is None:
            return "A function of CuPy that runs remotely."
        return fetch_doc(instance._qualname)


class Documented:
    """Mixin of objects that stand for a public name of CuPy and share its documentation."""

    __slots__ = ()
    _qualname: str
    __doc__ = _LazyDoc()

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        # Makes pydoc take these objects for routines, so that help(cupy.sum) shows the function and not our class.
        return self


def fetch_doc(qualname: str) -> str:
    """Return CuPy's documentation of ``qualname``, or a sentence that says why there is none."""
    from kernelproxy.session import pipeline

    try:
        return str(pipeline().call(".doc", (qualname,), Want.CONTENTS).value)
    except (WorkbenchError, AttributeError) as error:
        return f"{qualname}: no documentation could be fetched ({error})."
