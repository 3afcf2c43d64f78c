"""Where the catalogue's data lie."""

from __future__ import annotations

from pathlib import Path

__all__ = ["CARRIERS", "COMMAND", "ENTRIES", "INSTALLATION", "PACKAGE", "RESULTS", "TAXONOMY"]

#: This package's folder.
PACKAGE = Path(__file__).resolve().parent

#: One TOML file per system.
ENTRIES = PACKAGE / "entries"

#: Dimensions, terms, measures and units.
TAXONOMY = PACKAGE / "taxonomy.toml"

#: The pool's features that can carry a mechanism.
CARRIERS = PACKAGE / "carriers.toml"

#: The folder that holds ``catalog`` and, beside it, ``gpu_backend`` and the other packages.
INSTALLATION = PACKAGE.parent

#: What the project's benchmarks recorded; only a source checkout has it.
RESULTS = INSTALLATION / "benchmarks" / "results"

#: What measures a system's own figures, likewise.
COMMAND = RESULTS.parent / "systems.py"
