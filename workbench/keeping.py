"""Where a user's own files are kept, and what the operating system's refusal to keep one there means."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from jupyter_core.paths import jupyter_runtime_dir

from gpu_backend.pool.own_root import default_root
from gpu_backend.wire.errors import WorkbenchError
from kernelproxy.settings import config_path

_UNWRITABLE = (errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOTDIR)
#: Where what is kept lies, and so what to do where it cannot be.
REMEDY = (
    "Settings, keys, logs and notebooks are kept in your home directory, or where XDG_CONFIG_HOME, XDG_STATE_HOME and "
    "JUPYTER_RUNTIME_DIR say: have these, or HOME, name directories that can be written."
)


def shut() -> tuple[Path, ...]:
    """Return in which directories settings, pools of one's own or what kernels are handed cannot be kept."""
    return tuple(place for place in places() if not _is_writable(place))


def need() -> None:
    """Refuse to begin what could not be kept.

    Raises
    ------
    WorkbenchError
        If one of the directories that are needed cannot be written.
    """
    for place in shut():
        raise WorkbenchError(f"Nothing can be written to {place}. {REMEDY}")


def places() -> tuple[Path, ...]:
    """Return where settings, pools and what Jupyter runs are kept."""
    return config_path().parent, default_root().parent, Path(jupyter_runtime_dir())


def _is_writable(place: Path) -> bool:
    """Tell whether a file can be made in ``place``, or the directory itself, if it is not there yet."""
    there = next(one for one in (place, *place.parents) if one.exists())
    return there.is_dir() and os.access(there, os.W_OK | os.X_OK)


def refused_by_system(error: OSError) -> str:
    """Return in one line what the operating system has refused, and what to do where a file could not be kept."""
    named = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else ""
    where = f" ({named})" if named else ""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"The disk is full{where}. Make room there and try again; what runs goes on."
    is_ours = bool(named) and any(
        Path(named).is_relative_to(one) or one.is_relative_to(named) for one in (Path.home(), *places())
    )
    remedy = f" {REMEDY}" if error.errno in _UNWRITABLE and is_ours else ""
    return f"{error.strerror or error}{where}.{remedy}"
