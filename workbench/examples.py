"""The example notebooks, copied to where a person can change them."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

#: In a checkout they stand beside the packages; a wheel puts them below the environment's prefix.
_PLACES = (Path(__file__).parents[1] / "examples", Path(sys.prefix) / "share" / "gpu-workbench" / "examples")


def examples_directory() -> Path | None:
    """Return where the examples are installed; None if they are not."""
    return next((place for place in _PLACES if any(place.glob("*.ipynb"))), None)


def copy_examples(target: Path, source: Path | None = None) -> list[Path]:
    """Copy the examples that ``target`` does not have, and return all. A file that is there belongs to the user."""
    source = source or examples_directory()
    if source is None:
        return []
    target.mkdir(parents=True, exist_ok=True)
    notebooks = [target / notebook.name for notebook in sorted(source.glob("*.ipynb"))]
    for notebook in notebooks:
        if not notebook.exists():
            shutil.copyfile(source / notebook.name, notebook)
    return notebooks
