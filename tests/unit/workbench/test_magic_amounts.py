"""Amounts that nothing can hold, in the words of ``%gpu``: refused there, and nothing is asked of the pool."""

from __future__ import annotations

from argparse import Namespace

import pytest
from IPython.core.error import UsageError

from kernelproxy.client import current
from workbench import magics

from .scripted_gateway import ScriptedGateway


@pytest.mark.parametrize("word", ["0", "65", "99999999999999999999", 5000 * "9"])
def test_more_devices_than_a_session_has(word: str) -> None:
    with pytest.raises(UsageError, match="Say how many, 1 to 64: %gpu devices 2"):
        magics._take_devices(Namespace(word=word, drop_arrays=False))


def test_a_priority_that_there_is_not(gateway: ScriptedGateway) -> None:
    with pytest.raises(UsageError, match="99999999999999999999 is no priority; there are -1000000 to 1000000"):
        magics._class(Namespace(word="best-effort", request=None, limit=None, priority=99999999999999999999))
    assert current().wishes.said is None
    assert not gateway.asked


def test_a_class_that_there_is_not(gateway: ScriptedGateway) -> None:
    with pytest.raises(UsageError, match="There is no class 'foo'; there are best-effort, interactive, production"):
        magics._class(Namespace(word="foo", request=None, limit=None, priority=None))
    assert current().wishes.said is None
    assert not gateway.asked
