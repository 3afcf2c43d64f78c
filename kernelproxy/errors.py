"""Remote errors become local exceptions of the class that CuPy itself would have raised."""

from __future__ import annotations

import builtins
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from gpu_backend.opstream import surface
from gpu_backend.wire import errors as wire_errors
from gpu_backend.wire.errors import ErrorRecord, OpFailed, SessionLost, WarningRecord
from gpu_backend.wire.told import fit_words
from kernelproxy import public_names
from kernelproxy.source_lines import Site

_OURS = str(Path(__file__).parent)
#: How CuPy's warning ends of what it may change.
_EXPERIMENTAL = " is experimental. The interface can change in the future."
#: Modules whose exceptions an executor may raise here: by what it calls them, and all imported already.
_MODULES = {
    "builtins": builtins,
    "gpu_backend.wire.errors": wire_errors,
    "numpy.exceptions": np.exceptions,
    "numpy.linalg": np.linalg,
}
#: Modules from which CuPy has exceptions that are not its own.
_ALIASED = frozenset({"numpy.exceptions", "numpy.linalg", "scipy.sparse._base"})
#: What CuPy warns of by a private name.
_PRIVATE = frozenset({"cupy._util.PerformanceWarning"})


class MirrorDiffers(AssertionError):
    """What the notebook took an array to hold is not what the device says. Please report it, with the program."""


def remote_exception(record: ErrorRecord) -> Exception:
    """Return the exception that ``record`` describes.

    It looks as if CuPy had raised it here. Where it was raised in the executor is kept as ``remote_traceback``, for
    those who look for a defect in the pool.
    """
    record = fit_words(record)
    error = _construct(record)
    if record.traceback:
        error.remote_traceback = record.traceback  # type: ignore[attr-defined]
    if record.note:
        error.add_note(record.note)
    return error


def deferred_exception(record: ErrorRecord, site: Site | None) -> Exception:
    """Return the exception of an op that nobody waited for; its note names the line that recorded it."""
    error = remote_exception(record)
    if site is not None:
        error.add_note(f"Raised by an operation recorded earlier, at {site.describe()}")
    return error


def warn_again(records: tuple[WarningRecord, ...]) -> None:
    """Warn in the notebook of what an op warned of in the executor, as if CuPy had done it at the user's line.

    Of what is experimental CuPy's own modules warn: the user's filters see such a module, or
    ``cupy.disable_experimental_feature_warning`` turns the warning off.

    Raises
    ------
    Warning
        If the user's filters make it an error.
    """
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_OURS):
        frame = frame.f_back
    shown = frame.f_globals.setdefault("__warningregistry__", {})
    for record in fit_words(records):
        category = _class_of(record.kind)
        if category is None or not issubclass(category, Warning):
            category = RuntimeWarning
        module = frame.f_globals.get("__name__", "<string>")  # as Python calls it itself; none would not be told
        if record.message.endswith(_EXPERIMENTAL):
            if getattr(sys.modules.get("cupy"), "disable_experimental_feature_warning", False):
                continue
            module = record.message.removesuffix(_EXPERIMENTAL).rpartition(" ")[2]
        place = (frame.f_code.co_filename, frame.f_lineno)
        warnings.warn_explicit(record.message, category, *place, module, shown)


def warn_of_experimental(name: str) -> None:
    """Warn, as CuPy does, that it may change the API ``name``."""
    warn_again((WarningRecord("builtins.FutureWarning", name + _EXPERIMENTAL),))


def session_lost(reason: str, epoch: int) -> SessionLost:
    """Return the exception that tells of arrays lost with their executor, which ended for ``reason``."""
    why = reason or "The process that held this notebook's arrays ended unexpectedly."
    return SessionLost(
        f"{why} The arrays made so far are lost; a fresh executor (epoch {epoch}) has taken over. "
        "Run the cells again that make your arrays."
    )


def _construct(record: ErrorRecord) -> Exception:
    cls = _class_of(record.kind)
    if cls is None:
        return OpFailed(f"{record.kind}: {record.message}")
    try:
        if issubclass(cls, np.exceptions.AxisError):
            return cls(record.message)
        error = cls.__new__(cls)
        for args in (record.args, (record.message,)):
            error.args = args
            if str(error) == record.message:
                return error
    except Exception:  # a foreign class may want anything of its constructor; the user still gets the message
        pass
    return OpFailed(f"{record.kind}: {record.message}")


def _class_of(kind: str) -> type[Exception] | None:
    """Return the class that ``kind`` names. An executor names one of those below; it has nothing imported for it."""
    module_name, _, name = kind.rpartition(".")
    found: Any = None
    if module_name in _MODULES:
        found = vars(_MODULES[module_name]).get(name)
    elif kind.startswith(("cupy.", "cupyx.")):
        found = _of_cupy(kind)
    return found if isinstance(found, type) and issubclass(found, Exception) else None


def _of_cupy(kind: str) -> Any:
    if kind in _PRIVATE:
        return _make(kind)
    described = surface.load()
    entry = described.get(described.canonical(kind))
    if isinstance(entry, surface.Class) and entry.exception:
        return _make(kind)
    if isinstance(entry, surface.NumpyName):
        module_name, _, name = entry.target.rpartition(".")
        # Who has not imported SciPy filters none of its warnings.
        module = sys.modules.get(module_name) if module_name in _ALIASED else None
        return vars(module).get(name) if module is not None else None
    return None


def _make(kind: str) -> Any:
    return public_names.make(kind) if public_names.is_told() else None  # else nobody here knows CuPy
