"""What a notebook is told whose session is over."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import pytest

from gpu_backend.wire.errors import ForeignServer, KeyRefused, NotAuthorized, PoolError, SessionLost
from kernelproxy.session import coming_back
from kernelproxy.settings import ClientSettings


def test_why_an_executor_ended_is_guessed_only_where_nobody_told() -> None:
    told = str(coming_back.ended("The pool was stopped by its operator."))
    assert told.count("stopped") == 1
    assert "The pool cannot be reached now. When it is up again" in told
    assert "The pool cannot be reached now: it may have been stopped." in str(coming_back.ended(""))


@pytest.mark.parametrize(
    ("refused", "expected"),
    [
        (KeyRefused("It does not know our key."), SessionLost),  # it has closed what the key opened
        (ForeignServer("This is another pool."), ForeignServer),  # the way leads elsewhere, and may be mended
        (NotAuthorized("No key at ada.key."), NotAuthorized),  # nobody was asked
    ],
)
def test_only_a_pool_that_looked_at_the_key_can_say_that_the_session_is_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, refused: PoolError, expected: type[PoolError]
) -> None:
    def ask(*_: object) -> NoReturn:
        raise refused

    monkeypatch.setattr(coming_back.gateway_client, "request", ask)
    settings = ClientSettings(gateway="tcp://pool:1", server_key="", key_file=tmp_path / "ada.key")
    with pytest.raises(PoolError) as raised:
        coming_back.where(settings, "s", 1.0, "")
    assert type(raised.value) is expected
    assert str(raised.value).startswith(str(refused))


def test_what_was_told_before_is_not_lost_when_the_key_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def ask(*_: object) -> NoReturn:
        raise KeyRefused("It does not know our key.")

    monkeypatch.setattr(coming_back.gateway_client, "request", ask)
    settings = ClientSettings(gateway="tcp://pool:1", server_key="", key_file=tmp_path / "ada.key")
    with pytest.raises(SessionLost, match=r"^The pool was stopped\. The pool does not admit this notebook's key"):
        coming_back.where(settings, "s", 1.0, "The pool was stopped.")
