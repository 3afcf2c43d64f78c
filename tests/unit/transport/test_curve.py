"""Keys: kept where only their owner reads them, never shown, refused in words when they are no good."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpu_backend.transport import curve
from gpu_backend.wire.errors import NotAuthorized


def test_a_saved_key_comes_back_and_is_its_owners_alone(tmp_path: Path) -> None:
    keys, path = curve.generate(), tmp_path / "new" / "a.key"
    curve.save(keys, path)
    assert curve.load(path) == keys
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_a_key_is_made_once(tmp_path: Path) -> None:
    assert curve.load_or_generate(tmp_path / "k") == curve.load_or_generate(tmp_path / "k")


def test_a_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    curve.save(curve.generate(), tmp_path / "k")
    (tmp_path / "k").chmod(0o640)
    with pytest.raises(NotAuthorized, match="chmod 600"):
        curve.load(tmp_path / "k")


def test_no_key_and_half_a_key_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(NotAuthorized, match="workbench connect"):
        curve.load(tmp_path / "k")
    curve.save(curve.KeyPair(curve.generate().public, curve.generate().secret), tmp_path / "k")
    with pytest.raises(NotAuthorized, match="does not hold a key pair"):
        curve.load(tmp_path / "k")


@pytest.mark.parametrize("content", [b"", b"one", b"x" * 40 + b"\n" + b"y" * 3, b"\xff" * 81, b"a b c"])
def test_what_is_no_key_is_refused_in_words(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "k"
    path.touch(mode=0o600)
    path.write_bytes(content)
    with pytest.raises(NotAuthorized, match="does not hold a key pair"):
        curve.load(path)


def test_a_key_pair_does_not_show_its_secret() -> None:
    keys = curve.generate()
    assert keys.secret.decode() not in f"{keys!r} {keys}"


def test_a_public_key_is_forty_characters_of_z85() -> None:
    assert curve.is_public_key(curve.generate().public.decode())
    for wrong in ("", "x" * 39, "x" * 41, "é" * 40, " " * 40, "#" * 40):
        assert not curve.is_public_key(wrong), wrong
