"""Gets CuPy's own tests: from its source distribution, by pip, without building anything."""

from __future__ import annotations

import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.cupy_suite import sdist
from tests.cupy_suite.sdist import CannotFetch
from tests.cupy_suite.unpacking import unpack

__all__ = ["DEFAULT_CACHE", "VERSION", "CannotFetch", "Sources", "cython", "get"]

VERSION = "14.2.0"
#: What the package index must give us; anything else is refused by pip.
SHA256 = "cfed725e612178cfbdbf62f4a3a598b60edecbbca718c0d4580c21a16ae4a62c"
#: Where the tests are kept between runs; git ignores it.
DEFAULT_CACHE = Path(__file__).parents[2] / ".cupy-suite"
_CYTHON = re.compile(r"(?:cupy|cupy_backends)/.*\.(?:pyx|pxd|pxi)$")
_WANTED = re.compile(r"tests/cupyx?_tests/|cupyx?/.*\.py$|pyproject\.toml$")


@dataclass(frozen=True, slots=True)
class Sources:
    """The unpacked part of CuPy's source distribution: its tests, and its modules that are pure Python."""

    root: Path

    @property
    def tests(self) -> Path:
        """The folder below which node ids are written."""
        return self.root / "tests"

    @property
    def testing(self) -> Path:
        """``cupy.testing``: pure Python."""
        return self.root / "cupy" / "testing"

    @property
    def is_whole(self) -> bool:
        """Whether all that is wanted is there: earlier only the tests were."""
        return self.tests.is_dir() and (self.root / "cupyx").is_dir()

    @property
    def settings(self) -> Path:
        """CuPy's own settings of pytest: its markers and the warnings that are errors."""
        return self.root / "pyproject.toml"


def get(cache: Path = DEFAULT_CACHE) -> Sources:
    """Return CuPy's tests, fetched and unpacked if they are not in ``cache`` yet.

    Raises
    ------
    CannotFetch
        If pip cannot get them; the message ends with pip's own words.
    """
    sources = Sources(cache / f"cupy-{VERSION}")
    if not sources.is_whole:
        archive = sdist.download("cupy", VERSION, cache, SHA256)
        _unpack(archive, sources.root, _WANTED)
    return sources


def cython(cache: Path = DEFAULT_CACHE) -> Path:
    """Return the folder with the Cython sources beside CuPy's tests, unpacked if they are not in ``cache`` yet.

    Raises
    ------
    CannotFetch
        If pip cannot get CuPy's source distribution.
    """
    there = cache / f"cupy-{VERSION}-cython"
    if not there.is_dir():
        archive = sdist.download("cupy", VERSION, cache, SHA256)
        _unpack(archive, there, _CYTHON)
    return there


def _unpack(archive: Path, into: Path, wanted: re.Pattern[str]) -> None:
    top = f"cupy-{VERSION}/"
    with tempfile.TemporaryDirectory(dir=into.parent) as folder:
        unpack(archive, folder, wanted, top)
        shutil.rmtree(into, ignore_errors=True)
        Path(folder, top).rename(into)
