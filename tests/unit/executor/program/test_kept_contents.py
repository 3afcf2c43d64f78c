"""An op stream keeps contents that were uploaded, and writes them again when they are named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpu_backend.executor.answer import Answer
from gpu_backend.opstream.contents import KEEP, LEAST_BYTES, WRITE_KEPT, digest_of
from gpu_backend.wire.messages import Op, Want
from gpu_backend.wire.values import Buffer, Bytes, DType, Ref, Tuple

from .played import PlayedNotebook

SIZE = 2 * LEAST_BYTES
MOST = 2 * SIZE
CONTENTS = [np.random.default_rng(seed).bytes(SIZE) for seed in range(4)]
_KIND = "gpu_backend.wire.errors.ProtocolError"


@pytest.fixture
def notebook() -> PlayedNotebook:
    """Has an array 1 for contents."""
    made = PlayedNotebook(kept_bytes=MOST)
    made.run(Op("cupy.zeros", 1, (Tuple((SIZE,)), DType("|u1"))))
    return made


def keep(content: bytes, *gone: bytes, digest: bytes | None = None) -> Op:
    buffer = Buffer(-1, "|u1", (len(content),), content)
    return Op(KEEP, 0, (Bytes(digest or digest_of(content)), buffer, Tuple(tuple(Bytes(digest_of(g)) for g in gone))))


def write(content: bytes, handle: int = 1, offset: int = 0) -> Op:
    return Op(WRITE_KEPT, 0, (Ref(handle), offset, Bytes(digest_of(content))))


def errors(answers: list[Answer]) -> list[str]:
    return [answer.error.message for answer in answers if answer.error is not None and answer.error.kind == _KIND]


def test_what_is_kept_is_written_bit_for_bit(notebook: PlayedNotebook) -> None:
    for content in (CONTENTS[0], CONTENTS[1], CONTENTS[0]):
        assert not notebook.run(keep(content), write(content))
        assert notebook.contents(Ref(1)).tobytes() == content


def test_at_an_offset(notebook: PlayedNotebook) -> None:
    half = CONTENTS[0][: SIZE // 2]
    assert not notebook.run(keep(half), write(half, offset=SIZE // 2))
    assert notebook.contents(Ref(1)).tobytes() == bytes(SIZE // 2) + half


def test_it_is_the_executors_copy() -> None:
    """The memory of a message is others' when its ops have run."""
    content = bytearray(CONTENTS[0])
    notebook = PlayedNotebook(kept_bytes=MOST)
    seen = np.frombuffer(content, np.uint8)
    notebook.stream._functions[KEEP](digest_of(CONTENTS[0]), seen, ())
    content[:] = bytes(SIZE)
    notebook.run(Op("cupy.zeros", 1, (Tuple((SIZE,)), DType("|u1"))), write(CONTENTS[0]))
    assert notebook.contents(Ref(1)).tobytes() == CONTENTS[0]


def test_what_goes_is_gone_and_nothing_is_written(notebook: PlayedNotebook) -> None:
    notebook.run(keep(CONTENTS[0]), keep(CONTENTS[1]), keep(CONTENTS[2], CONTENTS[0]), write(CONTENTS[1]))
    (message,) = errors(notebook.run(write(CONTENTS[0])))
    assert "does not keep" in message
    assert notebook.contents(Ref(1)).tobytes() == CONTENTS[1]


def test_contents_of_another_digest_are_refused(notebook: PlayedNotebook) -> None:
    notebook.run(keep(CONTENTS[0], digest=digest_of(CONTENTS[1])))
    (message,) = errors(notebook.run(write(CONTENTS[1])))
    assert "not those by whose digest" in message
    assert not notebook.contents(Ref(1)).any()


def test_memory_is_bounded(notebook: PlayedNotebook) -> None:
    assert not errors(notebook.run(keep(CONTENTS[0]), keep(CONTENTS[1])))
    (message,) = errors(notebook.run(keep(CONTENTS[2])))
    assert "do not fit" in message
    assert notebook.stream._contents.bytes == MOST
    assert errors(PlayedNotebook().run(keep(CONTENTS[0])))  # one that keeps nothing


def test_what_an_executor_keeps_goes_with_its_session(notebook: PlayedNotebook) -> None:
    notebook.run(keep(CONTENTS[0]))
    notebook.stream.clear()
    assert notebook.stream._contents.bytes == 0


def test_a_missing_array_takes_no_contents_along(notebook: PlayedNotebook) -> None:
    notebook.run(keep(CONTENTS[0]), write(CONTENTS[0], 77))
    assert not notebook.run(write(CONTENTS[0]))
    assert notebook.contents(Ref(1)).tobytes() == CONTENTS[0]


@pytest.mark.parametrize(
    "args",
    [
        (),
        (Bytes(bytes(32)),),
        (5, Buffer(-1, "|u1", (3,), b"abc"), None),
        (Bytes(bytes(32)), Buffer(-1, "|u1", (3,), b"abc"), 7),
    ],
)
@pytest.mark.parametrize("name", [KEEP, WRITE_KEPT])
def test_nonsense_fails_and_ends_nothing(notebook: PlayedNotebook, name: str, args: tuple[Any, ...]) -> None:
    (answer,) = notebook.run(Op(name, 0, args, None, Want.DESCRIPTION))
    assert answer.error is not None
    assert notebook.stream._contents.bytes == 0
    assert not notebook.run(keep(CONTENTS[0]), write(CONTENTS[0]))
