"""Archives of sources, unpacked where nothing of them gets outside."""

from __future__ import annotations

import re
import tarfile
from pathlib import Path


def unpack(archive: Path, folder: str, wanted: re.Pattern[str] | None = None, top: str = "") -> None:
    """Unpack ``archive`` into ``folder``: all of it, or the members whose name below ``top`` is ``wanted``.

    Raises
    ------
    tarfile.FilterError
        If a member would lie outside. Python before 3.11.4 cannot tell: there the archive is trusted.
    """
    with tarfile.open(archive) as packed:
        packed.extraction_filter = getattr(tarfile, "data_filter", None)
        members = None if wanted is None else [m for m in packed if wanted.match(m.name.removeprefix(top))]
        packed.extractall(folder, members)
