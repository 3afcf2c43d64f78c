"""File systems of a test's own: mounted in a namespace that ends with the process in it."""

from __future__ import annotations

import subprocess
import tempfile

import pytest

APART = ("unshare", "--map-root-user", "--mount")


def _may_mount() -> bool:
    with tempfile.TemporaryDirectory() as place:
        try:
            return not subprocess.run(
                [*APART, "mount", "-t", "tmpfs", "tmpfs", place], capture_output=True, check=False
            ).returncode
        except OSError:
            return False


#: A mark for tests that need one.
needs_mounts = pytest.mark.skipif(
    not _may_mount(), reason="no file system can be mounted here, be it in a namespace of one's own"
)
