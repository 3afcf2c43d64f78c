"""What cannot be written leaves nothing behind, and is told by the name that was meant."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from gpu_backend.engine.detached import ProcessId, write_identity
from gpu_backend.gate import roster
from gpu_backend.transport import curve
from gpu_backend.transport.private_files import replace_private, write_private
from kernelproxy import settings
from kernelproxy.settings import ClientSettings

SETTINGS = ClientSettings(gateway="tcp://gpu:1", server_key=40 * "x", key_file=Path("/k"))
WRITERS: dict[str, Callable[[Path], object]] = {
    "a key": lambda path: curve.save(curve.generate(), path),
    "settings": lambda path: settings.save(SETTINGS, path),
    "a roster": lambda path: roster.write(path, roster.Roster()),
    "a process": lambda path: write_identity(path, ProcessId.mine()),
    "instructions": lambda path: write_private(path, b"{}"),
}


class FullDisk(BytesIO):
    def write(self, _: Any) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def on_a_full_disk(descriptor: int, *_: object) -> FullDisk:
    os.close(descriptor)
    return FullDisk()


@pytest.mark.parametrize("what", WRITERS)
def test_a_full_disk_leaves_what_was_there_and_nothing_else(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "kept"
    path.write_text("before")
    monkeypatch.setattr(os, "fdopen", on_a_full_disk)
    with pytest.raises(OSError, match="No space left") as told:
        WRITERS[what](path)
    assert (told.value.filename, told.value.filename2) == (str(path), None)
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [("kept", "before")]


def test_a_place_where_nothing_can_be_written_is_named_by_the_file_that_was_meant(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    for path in (tmp_path / "nowhere" / "file", tmp_path / "taken"):
        with pytest.raises(OSError) as told:
            replace_private(path, b"")
        assert (told.value.filename, told.value.filename2) == (str(path), None)
    assert [one.name for one in tmp_path.iterdir()] == ["taken"]


def test_a_file_that_others_can_read_is_theirs_no_more(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"same")
    path.chmod(0o644)
    replace_private(path, b"same")
    assert path.stat().st_mode & 0o777 == 0o600
