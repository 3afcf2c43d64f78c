"""Words of others: what a terminal would obey is not in what is shown of them."""

from __future__ import annotations

import msgspec
import pytest

from gpu_backend.wire.codec import Codec, encode
from gpu_backend.wire.errors import MalformedMessage
from gpu_backend.wire.orders import FromExecutorControl
from gpu_backend.wire.words import printable, printable_lines


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("größe 大小 5 €", "größe 大小 5 €"),
        ("\x1b[2Jgone\x07", "[2Jgone"),
        ("a\r\nb", "a  b"),
        ("\u202eright to left", "right to left"),
        ("10\u00a0GiB of \u0915\u094d\u200d\u0937", "10\u00a0GiB of \u0915\u094d\u200d\u0937"),
        ("a" * 301, "a" * 299 + "…"),
    ],
)
def test_one_line(said: str, shown: str) -> None:
    assert printable(said) == shown


def test_several_lines() -> None:
    assert printable_lines("first\r\n\tsecond\x1b]0;title\x07\rthird") == "first\n\tsecond ]0;title  third"
    assert printable_lines("one größe") == "one größe"


class Stranger(msgspec.Struct, array_like=True, tag="x" * 60_000 + "\x1b[2J\n"):
    """Whose name is all that is told of it where it is refused."""


def test_what_a_refused_message_is_quoted_with_is_short_and_printable() -> None:
    with pytest.raises(MalformedMessage) as refused:
        Codec(FromExecutorControl).decode(encode(Stranger()))
    assert len(str(refused.value)) <= 200
    assert str(refused.value).isprintable()
    assert str(MalformedMessage("\x1b[2Jno\n")) == "[2Jno"
