"""File functions: they read and write the notebook's own disk, then move the contents."""

from __future__ import annotations

from os import PathLike
from typing import IO, Any

import numpy as np

from kernelproxy.calls import dispatch
from kernelproxy.calls.argument_types import ArrayLike
from kernelproxy.calls.array_core import ArrayCore


class NpzFile:
    """What `load` returns for an archive: its arrays become remote when they are asked for.

    ``npz_file`` is NumPy's archive, which has the names.
    """

    def __init__(self, npz_file: np.lib.npyio.NpzFile) -> None:
        self.npz_file = npz_file

    def __enter__(self) -> NpzFile:
        self.npz_file.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self.npz_file.close()

    def __getitem__(self, key: str) -> Any:
        return dispatch.upload(self.npz_file[key])

    def close(self) -> None:
        """Close the archive."""
        self.npz_file.close()


def load(file: str | PathLike[str] | IO[bytes], mmap_mode: str | None = None, allow_pickle: bool | None = None) -> Any:
    """Load arrays that `save` or `savez` has written, from this machine's disk."""
    loaded = np.load(file, mmap_mode=mmap_mode, allow_pickle=bool(allow_pickle))  # type: ignore[arg-type]
    if isinstance(loaded, np.ndarray):
        return dispatch.upload(np.asarray(loaded))
    return NpzFile(loaded) if isinstance(loaded, np.lib.npyio.NpzFile) else loaded


def save(file: str | PathLike[str] | IO[bytes], arr: ArrayLike, allow_pickle: bool | None = None) -> None:
    """Save one array to this machine's disk."""
    np.save(file, _host(arr), allow_pickle=bool(allow_pickle))


def savez(file: str | PathLike[str] | IO[bytes], *args: ArrayLike, **kwds: ArrayLike) -> None:
    """Save several arrays to one archive on this machine's disk."""
    np.savez(file, *map(_host, args), **{name: _host(arr) for name, arr in kwds.items()})


def savez_compressed(file: str | PathLike[str] | IO[bytes], *args: ArrayLike, **kwds: ArrayLike) -> None:
    """Save several arrays to one compressed archive on this machine's disk."""
    np.savez_compressed(file, *map(_host, args), **{name: _host(arr) for name, arr in kwds.items()})


def savetxt(fname: str | PathLike[str] | IO[str] | IO[bytes], X: ArrayLike, *args: Any, **kwargs: Any) -> None:  # noqa: N803 (NumPy's name)
    """Save an array as text to this machine's disk."""
    np.savetxt(fname, _host(X), *args, **kwargs)


def loadtxt(*args: Any, **kwargs: Any) -> Any:
    """Load an array from text on this machine's disk; parameters as in NumPy."""
    return dispatch.upload(np.loadtxt(*args, **kwargs))


def genfromtxt(*args: Any, **kwargs: Any) -> Any:
    """Load an array from text with missing values; parameters as in NumPy."""
    return dispatch.upload(np.genfromtxt(*args, **kwargs))


def fromfile(*args: Any, **kwargs: Any) -> Any:
    """Load an array from a binary or text file on this machine's disk; parameters as in NumPy."""
    return dispatch.upload(np.fromfile(*args, **kwargs))


def fromstring(*args: Any, **kwargs: Any) -> Any:
    """Return an array of the numbers in a text; parameters as in NumPy."""
    return dispatch.upload(np.fromstring(*args, **kwargs))


def _host(arr: ArrayLike) -> Any:
    return arr.get() if isinstance(arr, ArrayCore) else arr
