"""A message that is half sent when its sender wants to change what it was made of."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .ways import Ways, received


@pytest.fixture(params=["local", "socket", "tls", "lanes"])
def ways(request: pytest.FixtureRequest) -> Iterator[Ways]:
    made = Ways(request.param)
    yield made
    made.close()


def test_what_waits_is_what_was_given_once_it_is_owned(ways: Ways) -> None:
    near, far = ways.pair()
    size = 24 << 20  # more than fits into any socket, and into a block
    given = bytearray(b"\1" * size)
    assert near.send([b"head", memoryview(given)])
    assert near.is_sending
    near.own()
    given[:] = b"\2" * size
    head, content = received(far, near)
    assert bytes(head) == b"head"
    assert len(content) == size
    assert bytes(content).count(b"\1") == size
