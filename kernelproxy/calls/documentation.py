"""Docstrings of remote functions and classes: fetched from the executor when somebody reads them."""

from __future__ import annotations

from typing import Any

from gpu_backend.wire.errors import WorkbenchError
from kernelproxy.client import current
from kernelproxy.stream.progress import answered

#: How long the executor is waited for, seconds.
_SECONDS = 2.0


class _LazyDoc:
    """``__doc__`` of instances; the class keeps its own."""

    def __get__(self, instance: Documented | None, owner: type) -> str:
        if instance is None:
            return "A function of CuPy that runs remotely."
        return fetch_doc(instance._qualname)


class ClassDoc:
    """``__doc__`` of a class that stands for one of CuPy, by its ``_qualname``."""

    def __get__(self, instance: object, owner: Any) -> str:
        return fetch_doc(owner._qualname)


class Documented:
    """Mixin of objects that stand for a public name of CuPy and share its documentation."""

    __slots__ = ()
    _qualname: str
    #: Every client's executor has it.
    _client = None
    __doc__ = _LazyDoc()

    def __init_subclass__(cls, **kwargs: object) -> None:
        """Let instances have CuPy's documentation, and not what is written of our class in its source."""
        super().__init_subclass__(**kwargs)
        cls.__doc__ = _LazyDoc()  # type: ignore[assignment]  # a class's own takes descriptors too

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        # Makes pydoc take these objects for routines, so that help(cupy.sum) shows the function and not our class.
        return self


def fetch_doc(qualname: str) -> str:
    """Return CuPy's documentation of ``qualname``, or a sentence that says why there is none.

    An editor asks for it while somebody types, so it waits neither behind the device's work nor for a lost pool.
    """
    try:
        answer = answered(current().pipeline, ".doc", (qualname,), _SECONDS)
    except (WorkbenchError, AttributeError) as error:
        return f"{qualname}: no documentation could be fetched ({error})."
    if answer is None:
        return f"{qualname}: no documentation could be fetched: the executor is busy or cannot be reached now."
    return str(answer.value) or (
        f"{qualname}: the device of this session has no text about it; real CuPy, on a GPU, has. CuPy's reference is "
        "at https://docs.cupy.dev/en/stable/reference/."
    )
