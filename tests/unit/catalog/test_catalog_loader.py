"""Entries are read from what was kept of them as long as they have not changed, and always right."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from catalog import loader
from catalog.paths import ENTRIES
from catalog.validation import MalformedEntry


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A catalogue of one entry, kept in a folder of its own."""
    mine = tmp_path / "entries"
    mine.mkdir()
    shutil.copy(ENTRIES / "tgs.toml", mine)
    monkeypatch.setattr(loader, "ENTRIES", mine)
    monkeypatch.setattr(loader, "_places", lambda: iter([tmp_path / "kept" / "entries.json"]))
    loader.entries.cache_clear()
    yield tmp_path
    loader.entries.cache_clear()


def read_again() -> str:
    loader.entries.cache_clear()
    return loader.entries()["tgs"].name


def refuse_to_parse(text: bytes, name: str) -> None:
    raise AssertionError(f"{name} was parsed again")


def test_what_was_parsed_is_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert read_again() == "TGS"
    assert (folder / "kept" / "entries.json").is_file()
    monkeypatch.setattr(loader, "read_entry", refuse_to_parse)
    assert read_again() == "TGS"


def test_a_change_is_seen(folder: Path) -> None:
    assert read_again() == "TGS"
    path = folder / "entries" / "tgs.toml"
    path.write_text(path.read_text().replace('name = "TGS"', 'name = "TGS!"'))
    assert read_again() == "TGS!"


@pytest.mark.parametrize("broken", [b"", b"{", b"[]", b'{"fingerprint": 1}', b"\xff\xfe"])
def test_a_broken_kept_file_is_not_believed(folder: Path, broken: bytes) -> None:
    assert read_again() == "TGS"
    kept = folder / "kept" / "entries.json"
    good = kept.read_bytes()
    kept.write_bytes(broken)
    assert read_again() == "TGS"
    assert kept.read_bytes() == good


def test_it_works_where_nothing_can_be_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "file").write_text("")
    monkeypatch.setattr(loader, "_places", lambda: iter([folder / "file" / "below" / "entries.json"]))
    assert read_again() == "TGS"


def test_the_places_are_the_package_and_the_users_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    package, user = loader._places()
    assert package.parent.name == "__pycache__"
    assert user == tmp_path / "gpu-workbench" / "catalog-entries.json"


def test_a_malformed_entry_is_named(folder: Path) -> None:
    path = folder / "entries" / "tgs.toml"
    path.write_text(path.read_text().replace('kind = "research-system"', 'kind = "reserch-system"'))
    with pytest.raises(MalformedEntry, match=r"^tgs\.toml: kind may not be 'reserch-system'; did you mean 'research-s"):
        read_again()
    path.write_text("id = ")
    with pytest.raises(MalformedEntry, match=r"^tgs\.toml: not valid TOML"):
        read_again()


def test_importing_the_catalogue_stays_light() -> None:
    """What makes an import slow is what it imports; the times themselves are benchmarks/catalogue.py's."""
    heavy = "pydantic rich IPython matplotlib numpy pandas sqlite3 tomllib zmq difflib argparse".split()
    code = f"import sys, catalog; print([name for name in {heavy!r} if name in sys.modules])"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout == "[]\n"


def test_listing_needs_neither_validation_nor_the_backend() -> None:
    heavy = "pydantic rich IPython matplotlib numpy pandas zmq gpu_backend kernelproxy cupy".split()
    code = f"import sys, catalog; str(catalog.systems()); print([n for n in {heavy!r} if n in sys.modules])"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout == "[]\n"
