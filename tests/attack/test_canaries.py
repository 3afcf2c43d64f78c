"""What is watched is told of, by whomever; but nobody is blamed for who walks through all folders of this machine."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.attack.canaries import Canaries


@pytest.fixture
def canaries(tmp_path: Path) -> Iterator[Canaries]:
    made = Canaries(tmp_path)
    yield made
    made.close()


def test_a_walk_through_all_folders_is_none_of_an_ops_doing(canaries: Canaries, tmp_path: Path) -> None:
    for _ in range(2):
        found = subprocess.run(["find", tmp_path], capture_output=True, check=True, text=True)
        assert str(canaries.file) in found.stdout
        assert not canaries.end()


def test_who_opens_that_folder_alone_is_noticed_below_python(
    canaries: Canaries, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.attack.canaries._WALK_SECONDS", 0.0)
    subprocess.run(["ls", canaries.directory], capture_output=True, check=True)
    assert canaries.end() == ["a folder of the canary opened"]
    assert not canaries.end()


def test_who_opens_or_makes_a_file_is_noticed_below_python(canaries: Canaries) -> None:
    subprocess.run(["cat", canaries.file], capture_output=True, check=True)
    assert canaries.end() == ["a file of the canary opened"]
    subprocess.run(["mkdir", canaries.directory / "made"], check=True)
    assert canaries.end() == ["a file of the canary made or written"]


def test_who_lists_the_folder_here_is_noticed(canaries: Canaries, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.attack.canaries._WALK_SECONDS", 0.0)
    canaries.begin()
    os.listdir(canaries.directory)
    assert canaries.end() == ["os.listdir of the canary", "a folder of the canary opened"]
