"""Which of a module's two forms is imported: what was compiled of it, or its source."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES, SOURCE_SUFFIXES
from pathlib import Path

import pytest

import gpu_backend
from gpu_backend.sources import VARIABLE

_FOLDER = Path(gpu_backend.__file__).parent / "opstream"
_COMPILED = [_FOLDER / f"marks{suffix}" for suffix in EXTENSION_SUFFIXES]
_IMPORT = "import gpu_backend.opstream.marks as marks, gpu_backend.opstream.entry as entry; print(marks.__file__)"


@pytest.mark.parametrize(("said", "wants_source"), [("off", True), ("", False)])
def test_sources_are_taken_where_the_environment_says_so(said: str, wants_source: bool) -> None:
    run = subprocess.run(
        [sys.executable, "-c", _IMPORT], env={**os.environ, VARIABLE: said}, capture_output=True, text=True, check=True
    )
    is_source = any(run.stdout.strip().endswith(suffix) for suffix in SOURCE_SUFFIXES)
    assert is_source == (wants_source or not any(one.exists() for one in _COMPILED))
