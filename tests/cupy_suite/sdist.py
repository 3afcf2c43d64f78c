"""Gets a source distribution by pip, without building anything."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.cupy_suite.unpacking import unpack

_FETCH_SECONDS = 240

#: pip asks a source distribution's build backend for its metadata, for which whatever it builds with would have to be
#: installed. Nothing is built here, so a backend that only says the name answers in its place.
_BACKEND = """
import os
import sys
from pathlib import Path

def prepare_metadata_for_build_wheel(directory, config_settings=None):
    name, version = os.environ["SDIST_NAME"], os.environ["SDIST_VERSION"]
    folder = Path(directory, f"{name.replace('-', '_')}-{version}.dist-info")
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n")
    return folder.name

__legacy__ = sys.modules[__name__]
"""
_BACKENDS = (
    "setuptools.build_meta",
    "setuptools_scm.build_meta",
    "hatchling.build",
    "flit_core.buildapi",
    "pdm.backend",
    "poetry.core.masonry.api",
    "mesonpy",
    "scikit_build_core.build",
    "uv_build",
)


class CannotFetch(Exception):
    """The tests are not here and cannot be fetched; the message says why."""


def download(name: str, version: str, into: Path, sha256: str = "") -> Path:
    """Return the archive of a source distribution, downloaded if it is not in ``into`` yet.

    Raises
    ------
    CannotFetch
        If pip cannot get it, or got another file than the one with ``sha256``; the message ends with pip's own words.
    """
    if there := _archive(name, version, into):
        return there
    into.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for backend in _BACKENDS:
            _write_module(Path(folder, "backends"), backend)
        wanted = Path(folder, "wanted.txt")
        wanted.write_text(f"{name}=={version}" + (f" --hash=sha256:{sha256}" if sha256 else "") + "\n")
        command = [
            *(sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--no-deps"),
            *("--no-binary", ":all:", "--no-build-isolation", *(["--require-hashes"] if sha256 else [])),
            *("--dest", str(into), "--requirement", str(wanted)),
        ]
        says = {"SDIST_NAME": name, "SDIST_VERSION": version, "PYTHONPATH": str(Path(folder, "backends"))}
        try:
            subprocess.run(
                command,
                env={**os.environ, **says},
                check=True,
                capture_output=True,
                text=True,
                timeout=_FETCH_SECONDS,
            )
        except subprocess.CalledProcessError as error:
            raise CannotFetch(f"pip cannot download {name} {version}: {error.stderr.strip()[-600:]}") from None
        except subprocess.TimeoutExpired:
            raise CannotFetch(f"pip did not download {name} {version} within {_FETCH_SECONDS} s.") from None
    if not (there := _archive(name, version, into)):
        raise CannotFetch(f"pip downloaded {name} {version}, and not as a .tar.gz.")
    return there


def get(name: str, version: str, cache: Path) -> Path:
    """Return the folder with a whole source distribution, fetched and unpacked if it is not in ``cache`` yet.

    Raises
    ------
    CannotFetch
        If pip cannot get it.
    """
    folder = cache / f"{name}-{version}-sdist"
    if not folder.is_dir():
        archive = download(name, version, cache)
        with tempfile.TemporaryDirectory(dir=cache) as place:
            unpack(archive, place)
            (top,) = Path(place).iterdir()
            top.rename(folder)
    return folder


def _archive(name: str, version: str, folder: Path) -> Path | None:
    spellings = (name, name.replace("-", "_"), name.lower().replace("-", "_"))
    return next((path for one in spellings if (path := folder / f"{one}-{version}.tar.gz").exists()), None)


def _write_module(folder: Path, name: str) -> None:
    *packages, module = name.split(".")
    for package in packages:
        folder /= package
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "__init__.py").touch()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{module}.py").write_text(_BACKEND)
